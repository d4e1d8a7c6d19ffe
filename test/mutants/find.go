package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
)

// finder walks over a package.
type finder struct {
	*code
	source *source
	in     string
	found  []*mutant
	// passedOn are the returns right after a check found an error: the change of the
	// condition already tries that the error is ignored.
	passedOn map[ast.Stmt]bool
}

// mutants returns all changes of a package.
func (c *code) mutants() []*mutant {
	f := &finder{code: c, passedOn: map[ast.Stmt]bool{}}
	for _, f.source = range c.files {
		for _, decl := range f.source.tree.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Body != nil && !wiring[d.Name.Name] {
					f.in = nameOf(d)
					f.walk(d.Body, d.Type)
				}
			case *ast.GenDecl:
				f.variables(d)
			}
		}
	}
	return f.found
}

// variables finds the changes in the functions that package variables hold, such as the rules of
// a chain.
func (f *finder) variables(d *ast.GenDecl) {
	for _, spec := range d.Specs {
		if s, ok := spec.(*ast.ValueSpec); ok && d.Tok == token.VAR {
			for _, value := range s.Values {
				f.in = s.Names[0].Name
				f.walk(value, nil)
			}
		}
	}
}

// wiring names the functions that only a manager calls.
var wiring = map[string]bool{"SetupWithManager": true}

func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	kind := f.Recv.List[0].Type
	for {
		switch k := kind.(type) {
		case *ast.StarExpr:
			kind = k.X
		case *ast.IndexExpr:
			kind = k.X
		case *ast.IndexListExpr:
			kind = k.X
		case *ast.Ident:
			return k.Name + "." + f.Name.Name
		default:
			return f.Name.Name
		}
	}
}

// walk finds the changes in the body of a function, and in the functions inside it.
func (f *finder) walk(body ast.Node, signature *ast.FuncType) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			f.walk(n.Body, n.Type)
			return false
		case *ast.IfStmt:
			f.condition(n.Cond, n.Body.List)
			f.initial(n.Init)
		case *ast.SwitchStmt:
			f.cases(n)
		case *ast.BinaryExpr:
			f.operands(n)
		case *ast.ReturnStmt:
			f.results(n, signature)
		case *ast.BlockStmt:
			f.effects(n.List)
		case *ast.CaseClause:
			f.effects(n.Body)
		case *ast.CommClause:
			f.effects(n.Body)
		case *ast.AssignStmt:
			f.lock(n)
		case *ast.CompositeLit:
			f.preconditions(n)
			f.predicates(n)
		case *ast.CallExpr:
			for _, argument := range n.Args {
				f.reader(argument)
			}
			if called, ok := n.Fun.(*ast.SelectorExpr); ok {
				f.reader(called.X)
			}
		}
		return true
	})
}

// truth changes a condition so that it never holds, always holds, or both in turn.
func (f *finder) truth(e ast.Expr, never, always bool) {
	if f.types.TypeOf(e) == nil || f.types.Types[e].Value != nil || !types.Identical(f.types.TypeOf(e).Underlying(), types.Typ[types.Bool]) &&
		!types.Identical(f.types.TypeOf(e).Underlying(), types.Typ[types.UntypedBool]) {
		return
	}
	if never {
		f.add("never", e, "((", ") && !mutantOn(%d))")
	}
	if always {
		f.add("always", e, "((", ") || mutantOn(%d))")
	}
}

// isError matches a check for an error. Such a check is not changed to hold always: it would
// return an error without a text, a mistake that no programmer makes.
var isError = regexp.MustCompile(`^(err|\w+Err) != nil$`)

func (f *finder) condition(e ast.Expr, then []ast.Stmt) {
	found := isError.Match(f.source.text[f.offset(e.Pos()):f.offset(e.End())])
	if found && len(then) == 1 {
		f.passedOn[then[0]] = true
	}
	f.truth(e, true, !found)
}

func (f *finder) offset(p token.Pos) int { return f.fset.Position(p).Offset }

// cases changes the conditions of a switch without a tag.
func (f *finder) cases(s *ast.SwitchStmt) {
	if s.Tag != nil {
		return
	}
	for _, clause := range s.Body.List {
		if c, ok := clause.(*ast.CaseClause); ok {
			for _, e := range c.List {
				f.condition(e, c.Body)
			}
		}
	}
}

// operands leaves out operands of && and ||.
func (f *finder) operands(e *ast.BinaryExpr) {
	if e.Op != token.LAND && e.Op != token.LOR {
		return
	}
	for _, side := range []ast.Expr{e.X, e.Y} {
		if inner, ok := side.(*ast.BinaryExpr); ok && inner.Op == e.Op {
			continue // its operands count as operands of this one
		}
		f.truth(side, e.Op == token.LOR, e.Op == token.LAND)
	}
}

// results changes returned booleans and errors.
func (f *finder) results(r *ast.ReturnStmt, signature *ast.FuncType) {
	if signature.Results == nil || len(r.Results) == 0 || len(r.Results) != signature.Results.NumFields() || f.passedOn[r] {
		return
	}
	for _, e := range r.Results {
		f.failure(e)
		if b, ok := e.(*ast.BinaryExpr); !ok || b.Op != token.LAND && b.Op != token.LOR {
			f.truth(e, true, true)
		} else {
			f.truth(e, b.Op == token.LAND, b.Op == token.LOR)
		}
	}
}

// initial leaves out the call of `if err := call(); err != nil`.
func (f *finder) initial(s ast.Stmt) {
	if a, ok := s.(*ast.AssignStmt); ok && len(a.Rhs) == 1 {
		f.failure(a.Rhs[0])
	}
}

var errorType = types.Universe.Lookup("error").Type()

// failure leaves out an error, with the call that it comes from.
func (f *finder) failure(e ast.Expr) {
	if t := f.types.TypeOf(e); t != nil && types.Identical(t, errorType) {
		f.add("no error", e, "mutantErr(%d, func() error { return ", "\n})")
	}
}

// quiet matches statements that do not count as effects: panics, logs, and deferred releases.
var quiet = regexp.MustCompile(`^(panic\(|_ = |defer (cancel|stop|\w+\.Close)\(|.*\b[lL]og\b.*\.(Info|Error)\()`)

// effects leaves out the statements of a block that have an effect.
func (f *finder) effects(block []ast.Stmt) {
	for _, s := range block {
		if quiet.Match(f.source.text[f.offset(s.Pos()):f.offset(s.End())]) {
			continue
		}
		switch s := s.(type) {
		case *ast.ExprStmt, *ast.DeferStmt, *ast.GoStmt, *ast.IncDecStmt, *ast.SendStmt:
			f.add("left out", s, "if !mutantOn(%d) { ", "\n}")
		case *ast.AssignStmt:
			if s.Tok != token.DEFINE {
				f.add("left out", s, "if !mutantOn(%d) { ", "\n}")
			} else if len(s.Rhs) == 1 {
				f.failure(s.Rhs[0])
			}
		}
	}
}

// lock leaves out the taking of a lock: a call that returns a function to release it, and an
// error.
func (f *finder) lock(a *ast.AssignStmt) {
	if len(a.Lhs) != 2 || len(a.Rhs) != 1 {
		return
	}
	results, ok := f.types.TypeOf(a.Rhs[0]).(*types.Tuple)
	if !ok || results.Len() != 2 || !types.Identical(results.At(1).Type(), errorType) {
		return
	}
	release, ok := results.At(0).Type().(*types.Signature)
	if ok && release.Params().Len() == 0 && release.Results().Len() == 0 {
		f.add("no lock", a.Rhs[0], "mutantLock(%d, func() (func(), error) { return ", "\n})")
	}
}

// preconditions leaves out preconditions one by one.
func (f *finder) preconditions(c *ast.CompositeLit) {
	if !isType(f.types.TypeOf(c), clientPackage, "Preconditions") {
		return
	}
	for _, e := range c.Elts {
		if field, ok := e.(*ast.KeyValueExpr); ok {
			f.add("no precondition", field.Value, "mutantZero(%d, ", ")")
		}
	}
}

// predicates changes the named functions in a literal that return a truth, such as the conditions
// of rules. walk changes the functions that are written in place.
func (f *finder) predicates(c *ast.CompositeLit) {
	for _, e := range c.Elts {
		field, ok := e.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		signature, ok := f.types.TypeOf(field.Value).(*types.Signature)
		if _, here := field.Value.(*ast.FuncLit); here || !ok || signature.Variadic() || signature.Params().Len() != 1 ||
			signature.Results().Len() != 1 || !types.Identical(signature.Results().At(0).Type(), types.Typ[types.Bool]) {
			continue
		}
		f.add("never", field.Value, "mutantHolds(%d, false, ", ")")
		f.add("always", field.Value, "mutantHolds(%d, true, ", ")")
	}
}

const clientPackage = "sigs.k8s.io/controller-runtime/pkg/client"

// reader replaces a read from the API server by a read from the cache, where there are both.
func (f *finder) reader(e ast.Expr) {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || !isType(f.types.TypeOf(s), clientPackage, "Reader") {
		return
	}
	owner := f.types.TypeOf(s.X)
	if owner == nil {
		return
	}
	for _, name := range []string{"Client", "client"} {
		field, _, _ := types.LookupFieldOrMethod(owner, true, f.pkg, name)
		if field != nil && isType(field.Type(), clientPackage, "Client") {
			text := string(f.source.text[f.offset(s.X.Pos()):f.offset(s.X.End())])
			f.add("cached", s, "mutantReader(%d, ", ", "+text+"."+name+")")
		}
	}
}

func isType(t types.Type, pkg, name string) bool {
	named, ok := types.Unalias(t).(*types.Named)
	return ok && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == pkg && named.Obj().Name() == name
}

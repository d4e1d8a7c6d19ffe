package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "shape:", err)
		os.Exit(1)
	}
}

// run measures the programs of the repository that it is called in.
func run(ctx context.Context) error {
	var files []file
	seen := map[string]bool{}
	for _, m := range []module{{".", []string{"./cmd/berth", "./cmd/kubectl-berth"}}, {"scheduler", []string{"."}}} {
		shipped, err := m.load(ctx)
		if err != nil {
			return err
		}
		for _, f := range shipped {
			if !seen[f.path] {
				seen[f.path] = true
				files = append(files, f)
			}
		}
	}
	return report(os.Stdout, files)
}

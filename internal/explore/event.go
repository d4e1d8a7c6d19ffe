package explore

import (
	"fmt"
	"strconv"
	"strings"
)

// Event is one step of the world. It names its kind and its target and no random
// numbers, so that a schedule still makes sense when other events are left out.
type Event struct {
	Kind Kind
	A, B uint8
}

// Kind of event.
type Kind uint8

const (
	agentSteps Kind = iota // A node, B bits: old answers
	controllerSteps
	delivers // A stream, B again
	loses
	appWrites
	wants // A node, B both
	unwants
	ticksBy // A index of ticks
	crashes
	boots
	powersOff
	agentStops
	agentStarts
	pauses
	resumes
	cuts
	heals
	isolates // A from all endpoints
	rejoins
	apiStops
	apiStarts
	restores // A versions back
	forgets
	wrecks
	taints
	untaints
	approves
	factors
	attaches
	deletesNode
	addsNode
	blips // the node's session with the disk ends, and another begins
	restartsTarget
	presses // another volume's primary wants the slot
	relieves
	restartsController
	deletes // the volume
	evicts  // a pod with a dead mount
	sends   // a command to the shared disk, which will execute it later
	lands   // the disk executes it
	deafens // the API server stores what the node sends to it, and its answers to renewals are lost
	hears
	expands // a user wants the volume larger
	fills   // a node has no room for a larger copy
	drains
	cordons // no pod is placed on the node, and attachments shall be elsewhere
	uncordons
	clears // the target loses the reservation, and keeps the registrations
	kinds
)

var kindNames = [kinds]string{"agent", "controller", "deliver", "lose", "write", "want", "unwant", "tick", "crash", "boot",
	"power-off", "agent-stop", "agent-start", "pause", "resume", "cut", "heal", "isolate", "rejoin", "api-stop", "api-start", "restore",
	"forget", "wreck", "taint", "untaint", "approve", "factor", "attach", "delete-node", "add-node",
	"blip", "restart-target", "press", "relieve", "restart-controller", "delete", "evict", "send", "land", "deafen", "hear", "expand", "fill", "drain", "cordon", "uncordon", "clear-target"}

// onNode are the kinds whose A is an endpoint.
var onNode = [kinds]bool{agentSteps: true, appWrites: true, wants: true, unwants: true, crashes: true, boots: true, powersOff: true,
	agentStops: true, agentStarts: true, pauses: true, resumes: true, cuts: true, heals: true, isolates: true, rejoins: true, wrecks: true, taints: true,
	untaints: true, attaches: true, deletesNode: true, addsNode: true, blips: true, presses: true, relieves: true, evicts: true, sends: true, lands: true, deafens: true, hears: true, fills: true, drains: true, cordons: true, uncordons: true}

func (e Event) String() string {
	s := kindNames[e.Kind]
	switch {
	case e.Kind == cuts || e.Kind == heals:
		return s + " " + names[e.A] + " " + names[e.B]
	case e.Kind == apiStops || e.Kind == apiStarts || e.Kind == forgets || e.Kind == restartsTarget || e.Kind == clears || e.Kind == deletes || e.Kind == expands:
		return s
	case onNode[e.Kind]:
		s += " " + names[e.A]
	default:
		s += " " + strconv.Itoa(int(e.A))
	}
	if e.B != 0 {
		s += " " + strconv.Itoa(int(e.B))
	}
	return s
}

// ParseEvent reads the output of String.
func ParseEvent(line string) (Event, error) {
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return Event{}, fmt.Errorf("empty event")
	}
	for k := range kinds {
		if kindNames[k] != fields[0] {
			continue
		}
		e := Event{Kind: k}
		for i, f := range fields[1:] {
			n, err := parseArgument(f)
			if err != nil {
				return Event{}, fmt.Errorf("event %q: %w", line, err)
			}
			if i == 0 {
				e.A = n
			} else {
				e.B = n
			}
		}
		return e, nil
	}
	return Event{}, fmt.Errorf("event %q: no such kind", line)
}

func parseArgument(s string) (uint8, error) {
	for i, n := range names {
		if n == s {
			return uint8(i), nil
		}
	}
	n, err := strconv.ParseUint(s, 10, 8)
	if err != nil {
		return 0, fmt.Errorf("argument %q is neither an endpoint nor a number", s)
	}
	return uint8(n), nil
}

// Apply lets the event happen. It tells whether anything happened: an event
// that does not fit the state of the world is passed over.
func (w *World) Apply(e Event) bool {
	a, b := int(e.A), int(e.B)
	switch {
	case e.Kind == cuts || e.Kind == heals:
		if a >= endpoints {
			return false
		}
	case onNode[e.Kind] && a >= w.cfg.Nodes:
		return false
	}
	switch e.Kind {
	case agentSteps:
		return w.agents().agentStep(a, e.B)
	case controllerSteps:
		return a < controllers && w.overseers().controllerStep(a, e.B)
	case delivers:
		return w.wire().deliver(a, b != 0)
	case loses:
		if a >= len(w.streams) {
			return false
		}
		w.wire().lose(a)
		return true
	case appWrites:
		return w.agents().appWrite(a)
	case ticksBy:
		if a >= len(ticks) {
			return false
		}
		w.tick(ticks[a])
		return true
	case restartsController:
		return a < controllers && w.overseers().restartController(a)
	case approves:
		return a < controllers && w.faults().approve(a)
	case deletes:
		return w.faults().deleteVolume()
	case expands:
		return w.faults().expand()
	case factors:
		return a > 0 && w.faults().setFactor(a)
	case restores:
		return w.faults().restore(a, false)
	case forgets:
		return w.faults().restore(0, true)
	case apiStops, apiStarts:
		return turn(&w.server.down, e.Kind == apiStops)
	}
	return w.faults().machineEvent(e.Kind, a, b)
}

// turn sets a flag, and tells whether that changed it.
func turn(flag *bool, to bool) (changed bool) {
	changed = *flag != to
	*flag = to
	return changed
}

func (w faults) machineEvent(k Kind, a, b int) bool {
	n := &w.nodes[a%maxNodes]
	switch k {
	case wants:
		return w.want(a, b != 0)
	case unwants:
		return w.unwant(a)
	case evicts:
		return w.evict(a)
	case deletesNode, addsNode:
		return turn(&n.deleted, k == deletesNode)
	case crashes:
		return w.crash(a)
	case boots:
		return w.boot(a)
	case powersOff:
		return w.powerOff(a)
	case agentStops:
		return w.agentDown(a)
	case agentStarts:
		return w.agentUp(a)
	case pauses, resumes:
		changed := n.up && n.paused != (k == pauses)
		if changed {
			n.paused, n.woke = k == pauses, k == resumes
		}
		return changed
	case deafens, hears:
		return turn(&n.deaf, k == deafens)
	case fills, drains:
		return w.cfg.Kind.Traits().Data && turn(&n.full, k == fills)
	case cordons, uncordons:
		return w.cfg.Kind.Traits().Attaches && turn(&n.cordoned, k == cordons)
	case cuts, heals:
		return b < endpoints && w.link(a, b, k == heals)
	case isolates, rejoins:
		changed := false
		for j := range endpoints {
			changed = w.link(a, j, k == rejoins) || changed
		}
		return changed
	case wrecks:
		return w.wreck(a)
	case taints: // an administrator taints only a machine that is really off
		changed := !n.up && !n.tainted
		n.tainted = n.tainted || changed
		return changed
	case untaints:
		changed := n.up && n.tainted
		n.tainted = n.tainted && !changed
		return changed
	}
	return w.diskEvent(k, a, b != 0)
}

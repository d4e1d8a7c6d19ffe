package address

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// look is how often a Book lists the Leases, and soon how often until the first list.
const (
	look = time.Minute
	soon = 5 * time.Second
)

// Book has the addresses of all nodes in a file, so that they are known while the API server is away, also to
// a process that has just begun.
type Book struct {
	path string
	log  logr.Logger

	mu    sync.Mutex
	known map[string]string
}

// OpenBook reads the book. One that cannot be read is empty: its loss costs answers, until the next look.
func OpenBook(path string, log logr.Logger) *Book {
	b := &Book{path: path, log: log}
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &b.known)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		log.Error(err, "the addresses of other nodes are not known until the API server is asked", "file", path)
	}
	return b
}

// Address returns the address of a node.
func (b *Book) Address(_ context.Context, node string) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	address, ok := b.known[node]
	if !ok {
		return "", fmt.Errorf("no guard of node %s has announced an address", node)
	}
	return address, nil
}

// Keep lists the Leases again and again until ctx ends, and keeps what they announce.
func (b *Book) Keep(ctx context.Context, from Leases, c clock.WithTicker) {
	for {
		next := look
		if err := b.learn(ctx, from); err != nil && ctx.Err() == nil {
			b.log.Error(err, "the addresses of other nodes are those from before")
			next = soon
		}
		timer := c.NewTimer(next)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		}
	}
}

// learn takes the addresses from one list, which the API server may answer from its memory. A node whose Lease
// announces none has none.
func (b *Book) learn(ctx context.Context, from Leases) error {
	ctx, cancel := context.WithTimeout(ctx, look)
	defer cancel()
	var list coordinationv1.LeaseList
	err := from.Client.List(ctx, &list, client.InNamespace(from.Namespace), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}})
	if err != nil {
		return fmt.Errorf("listing the leases of guards: %w", err)
	}
	known := map[string]string{}
	for i := range list.Items {
		node, is := strings.CutPrefix(list.Items[i].Name, from.Prefix)
		if !is {
			continue
		}
		address, err := Of(&list.Items[i])
		if err != nil {
			b.log.V(1).Info("a node cannot be asked", "node", node, "why", err.Error())
			continue
		}
		known[node] = address
	}
	return b.replace(known)
}

// replace writes the file as a whole, so that a process that dies leaves the old one or the new one.
func (b *Book) replace(known map[string]string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known = known
	text, err := json.Marshal(known)
	if err != nil {
		return err
	}
	next := b.path + ".next"
	if err := os.WriteFile(next, text, 0o600); err != nil {
		return fmt.Errorf("keeping the addresses of other nodes: %w", err)
	}
	return os.Rename(next, b.path)
}

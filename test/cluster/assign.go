package cluster

import (
	"encoding/json"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// assign copies one object's content into another of the same type, through
// its wire form: the only way to copy that all generated types share.
func assign(to, from client.Object) error {
	raw, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, to)
}

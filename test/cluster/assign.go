package cluster

import (
	"encoding/json"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// assign copies one object's content into another of the same type, through
// its wire form: the only copy every generated type has in common.
func assign(to, from client.Object) error {
	raw, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, to)
}

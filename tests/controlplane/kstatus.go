package main

import (
	"encoding/json"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

// kstatus reads one object or a List, as kubectl's -o json prints it, and writes what kstatus says of each:
// {"Fleet/provers": {"status": "Current", "message": "..."}}.
func kstatus(in io.Reader, out io.Writer) error {
	raw, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	// kstatus wants whole numbers as int64, which this decoder makes of them and encoding/json does not
	decoded, err := runtime.Decode(unstructured.UnstructuredJSONScheme, raw)
	if err != nil {
		return err
	}
	var objects []unstructured.Unstructured
	switch read := decoded.(type) {
	case *unstructured.UnstructuredList:
		objects = read.Items
	case *unstructured.Unstructured:
		objects = append(objects, *read)
	}
	said := map[string]map[string]string{}
	for i := range objects {
		name := objects[i].GetKind() + "/" + objects[i].GetName()
		if _, twice := said[name]; twice {
			return fmt.Errorf("two objects are called %s: ask for one namespace at a time", name)
		}
		result, err := status.Compute(&objects[i])
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		said[name] = map[string]string{"status": result.Status.String(), "message": result.Message}
	}
	return json.NewEncoder(out).Encode(said)
}

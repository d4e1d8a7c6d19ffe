package inventory

import (
	"bytes"
	"fmt"
	"strings"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// Artefact is what a bill of materials describes.
type Artefact struct {
	Name, Version string
	// Container tells an image from a program or another file.
	Container bool
	Modules   []Licensed
	Packages  []Package
	// Images that the artefact makes a cluster run, by complete names.
	Images []string
}

// licence of everything in this repository.
const licence = "Apache-2.0"

// BillOfMaterials returns the artefact's bill of materials as JSON. It has neither a time nor
// a serial number: the same artefact has the same bill.
func BillOfMaterials(a Artefact) ([]byte, error) {
	kind := cyclonedx.ComponentTypeApplication
	if a.Container {
		kind = cyclonedx.ComponentTypeContainer
	}
	components := []cyclonedx.Component{}
	for _, m := range a.Modules {
		components = append(components, cyclonedx.Component{
			BOMRef: m.url(), Type: cyclonedx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: m.url(), Licenses: licences(m.Licences),
		})
	}
	for _, p := range a.Packages {
		components = append(components, cyclonedx.Component{
			BOMRef: p.url(), Type: cyclonedx.ComponentTypeLibrary, Name: p.Name, Version: p.Version, PackageURL: p.url(),
		})
	}
	for _, i := range a.Images {
		components = append(components, cyclonedx.Component{BOMRef: i, Type: cyclonedx.ComponentTypeContainer, Name: i})
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Component: &cyclonedx.Component{
		BOMRef: a.Name, Type: kind, Name: a.Name, Version: a.Version, Licenses: licences([]string{licence}),
	}}
	bom.Components = &components
	var out bytes.Buffer
	encoder := cyclonedx.NewBOMEncoder(&out, cyclonedx.BOMFileFormatJSON).SetPretty(true)
	if err := encoder.EncodeVersion(bom, cyclonedx.SpecVersion1_6); err != nil {
		return nil, fmt.Errorf("writing the bill of materials of %s: %w", a.Name, err)
	}
	return out.Bytes(), nil
}

// licences joins identifiers to an expression: all of them apply.
func licences(ids []string) *cyclonedx.Licenses {
	if len(ids) == 0 {
		return nil
	}
	return &cyclonedx.Licenses{{Expression: strings.Join(ids, " AND ")}}
}

package csi

import (
	"strings"
	"unicode"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/storageclass"
	"berth.dev/berth/internal/usecase/volumes"
)

// maxName is the longest CSI name and id that the specification allows, in bytes.
const maxName = 128

func parseCreate(d driver.Driver, r *csi.CreateVolumeRequest) (volumes.Request, error) {
	if err := checkCreate(r); err != nil {
		return volumes.Request{}, err
	}
	use, err := parseCapabilities(d, r.GetVolumeCapabilities())
	if err != nil {
		return volumes.Request{}, err
	}
	parameters, attachments, err := parseParameters(d, r.GetParameters(), use)
	if err != nil {
		return volumes.Request{}, err
	}
	topology, err := parseRequirements(r.GetAccessibilityRequirements())
	if err != nil {
		return volumes.Request{}, err
	}
	source, err := parseSource(r.GetVolumeContentSource())
	if err != nil {
		return volumes.Request{}, err
	}
	w := volumes.Wish{
		Name: r.GetName(), Parameters: parameters, Mode: use.mode, FSType: use.fsType,
		MountOptions: mountOptions(r.GetVolumeCapabilities()), Size: parseSize(r.GetCapacityRange()), Topology: topology, Source: source,
	}
	request, err := w.Request()
	request.Attachments = attachments
	return request, err
}

// parseParameters reads the parameters of a driver's class. attachments is nil for volumes of pools.
func parseParameters(d driver.Driver, given map[string]string, u use) (of storageclass.Parameters, attachments *volumes.Attachments, err error) {
	if !d.Epochs() {
		of, err = storageclass.Parse(given)
		return of, nil, err
	}
	p, err := storageclass.ParseDisk(given, u.mode == v1alpha1.Block)
	if err == nil && u.many {
		err = p.ManyWriters()
	}
	attachments = &volumes.Attachments{
		MaxShares: p.MaxShares, Factor: p.Factor, Yields: p.Yields, Check: p.Check, OnDemand: p.OnDemand, ManyWriters: u.many,
	}
	return p.Parameters, attachments, err
}

func checkCreate(r *csi.CreateVolumeRequest) error {
	if len(r.GetMutableParameters()) > 0 {
		return invalid("a VolumeAttributesClass is not supported")
	}
	return checkName("volume", r.GetName())
}

// checkName checks the CSI name of an object against the specification.
func checkName(kind, name string) error {
	switch {
	case name == "":
		return invalid("%s name is missing", kind)
	case len(name) > maxName:
		return invalid("%s name is %d bytes long, at most %d are allowed", kind, len(name), maxName)
	case strings.ContainsFunc(name, unicode.IsControl):
		return invalid("%s name %q contains control characters", kind, name)
	}
	return nil
}

func parseSize(r *csi.CapacityRange) volumes.Size {
	return volumes.Size{Required: r.GetRequiredBytes(), Limit: r.GetLimitBytes()}
}

func checkID(id string) error {
	if id == "" {
		return invalid("volume id is missing")
	}
	return nil
}

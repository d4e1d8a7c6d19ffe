package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"berth.dev/berth/hack/release/internal/oci"
)

// pushed brings a release to a registry of its own, and returns where its things are and
// what was said of them.
func pushed(t *testing.T, dir string) (at string, said []string) {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	at = strings.TrimPrefix(server.URL, "http://") + "/team"
	store, err := oci.OpenStore(filepath.Join(dir, Store))
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Push(t.Context(), at, func(s string) { said = append(said, s) }); err != nil {
		t.Fatal(err)
	}
	return at, said
}

func reference(t *testing.T, complete string) name.Reference {
	t.Helper()
	ref, err := name.ParseReference(complete, name.StrictValidation)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// pull returns an image for an architecture, after it has checked all its digests.
func pull(t *testing.T, ref name.Reference, architecture string) v1.Image {
	t.Helper()
	image, err := remote.Image(ref, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: architecture}))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(image); err != nil {
		t.Fatal(err)
	}
	return image
}

// files returns the content of the files in a compressed archive.
func files(t *testing.T, r io.Reader) map[string]string {
	t.Helper()
	plain, err := gzip.NewReader(r)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for archive := tar.NewReader(plain); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		all[h.Name] = string(data)
	}
}

func TestARegistryHasTheImagesForEachArchitecture(t *testing.T) {
	at, said := pushed(t, common(t))
	for _, i := range all {
		complete := at + "/berth/" + i.name + ":1.2.3"
		ref := reference(t, complete)
		index, err := remote.Index(ref)
		if err != nil {
			t.Fatal(err)
		}
		digest, err := index.Digest()
		if want := complete + "@" + digest.String(); err != nil || !slices.Contains(said, want) {
			t.Errorf("pulled %s, %v, and pushed %q", want, err, said)
		}
		for _, architecture := range architectures {
			image := pull(t, ref, architecture)
			config, err := image.ConfigFile()
			if err != nil {
				t.Fatal(err)
			}
			if config.Architecture != architecture || !slices.Equal(config.Config.Entrypoint, []string{"/" + i.entrypoint}) {
				t.Errorf("the image of the %s for %s is for %s and runs %q", i.name, architecture, config.Architecture, config.Config.Entrypoint)
			}
			if privileged := config.Config.User == ""; privileged != i.tools {
				t.Errorf("the image of the %s runs as %q", i.name, config.Config.User)
			}
			wantLayers(t, i, image)
		}
	}
}

// wantLayers checks that the program is above its licences, and both above the tools.
func wantLayers(t *testing.T, i image, pulled v1.Image) {
	t.Helper()
	layers, err := pulled.Layers()
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{{"LICENSE"}, {i.entrypoint}}
	if i.tools {
		want = append([][]string{{"libx"}}, want...)
	}
	var got [][]string
	for _, l := range layers {
		r, err := l.Compressed()
		if err != nil {
			t.Fatal(err)
		}
		var bases []string
		for name := range files(t, r) {
			if base := filepath.Base(name); !strings.HasSuffix(name, "/") && base != "PATENTS" {
				bases = append(bases, base)
			}
		}
		slices.Sort(bases)
		got = append(got, slices.Compact(bases))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files of the layers of the %s (-want +got):\n%s", i.name, diff)
	}
}

func TestTheChartInARegistryNamesTheImagesOfTheRelease(t *testing.T) {
	dir := common(t)
	at, _ := pushed(t, dir)
	chart, err := remote.Image(reference(t, at+"/charts/berth:1.2.3"))
	if err != nil {
		t.Fatal(err)
	}
	layers, err := chart.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("the chart has the layers %v, %v", layers, err)
	}
	r, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	archive, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	onDisk, err := os.ReadFile(filepath.Join(dir, "berth-1.2.3.tgz"))
	if err != nil || !bytes.Equal(onDisk, archive) {
		t.Errorf("the chart in the folder is another than that in the registry, %v", err)
	}
	values := files(t, bytes.NewReader(archive))["berth/values.yaml"]
	for _, i := range all {
		digest, err := remote.Index(reference(t, at+"/berth/"+i.name+":1.2.3"))
		if err != nil {
			t.Fatal(err)
		}
		if h, err := digest.Digest(); err != nil || !strings.Contains(values, `digest: "`+h.String()+`"`) {
			t.Errorf("the chart's values do not have digest %s of the %s, %v", h, i.name, err)
		}
	}
	if n := strings.Count(values, `registry: "registry.example.org/team"`); n != len(all) {
		t.Errorf("the registry of %d images is filled in, want %d", n, len(all))
	}
}

func TestTheOtherFilesAreInTheRegistryByName(t *testing.T) {
	dir := common(t)
	at, _ := pushed(t, dir)
	artefact, err := remote.Image(reference(t, at+"/berth/files:1.2.3"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := artefact.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range m.Layers {
		title := l.Annotations["org.opencontainers.image.title"]
		if sum, err := checksum(os.DirFS(dir), title); err != nil || "sha256:"+sum != l.Digest.String() {
			t.Errorf("%s is %s in the registry, and %s, %v in the folder", title, l.Digest, sum, err)
		}
		got = append(got, title)
	}
	var want []string
	for name := range content(t, dir) {
		if name != sums && filepath.Ext(name) != ".tgz" && !strings.HasPrefix(name, Store+"/") {
			want = append(want, name)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

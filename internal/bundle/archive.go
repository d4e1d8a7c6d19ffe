package bundle

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// The bounds of a bundle, in bytes.
const (
	// MaxFile is the size of one file; the rest of a longer one is left out.
	MaxFile = 4 << 20
	// MaxTotal is the size of all files together, before they are compressed.
	MaxTotal = 512 << 20
)

// ManifestName is the last file of a bundle. It lists the files of the bundle, and those that are missing.
const ManifestName = "manifest.json"

// Manifest says what is in a bundle.
type Manifest struct {
	// Made is when the bundle was made, by the clock of the machine that made it.
	Made time.Time `json:"made"`
	// Version of the program that made it, and the Namespace that Berth was looked for in.
	Version   string `json:"version"`
	Namespace string `json:"namespace"`
	// Files of the bundle, in their order.
	Files []File `json:"files"`
	// Missing parts, each with the reason.
	Missing []Part `json:"missing"`
}

// File is one file of a bundle.
type File struct {
	Path  string `json:"path"`
	Bytes int    `json:"bytes"`
	// Cut says that the file was longer than a bundle may have it.
	Cut bool `json:"cut,omitempty"`
}

// Part is a part of a bundle that is missing.
type Part struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// archive writes the files of a bundle, below one folder.
type archive struct {
	gz       *gzip.Writer
	tar      *tar.Writer
	folder   string
	manifest Manifest
	// room is how many bytes may still be added.
	room int
}

func newArchive(to io.Writer, folder string, m Manifest) *archive {
	m.Files, m.Missing = []File{}, []Part{}
	gz := gzip.NewWriter(to)
	return &archive{gz: gz, tar: tar.NewWriter(gz), folder: folder, manifest: m, room: MaxTotal}
}

// add writes a file. A file for which there is no room is noted as missing.
func (a *archive) add(path string, content []byte, cut bool) error {
	if len(content) > MaxFile {
		content, cut = content[:MaxFile], true
	}
	if len(content) > a.room {
		a.miss(path, errors.New("the bundle is full"))
		return nil
	}
	a.room -= len(content)
	a.manifest.Files = append(a.manifest.Files, File{Path: path, Bytes: len(content), Cut: cut})
	return a.write(path, content)
}

func (a *archive) write(path string, content []byte) error {
	h := &tar.Header{Name: a.folder + "/" + path, Mode: 0o600, Size: int64(len(content)), ModTime: a.manifest.Made, Format: tar.FormatPAX}
	if err := a.tar.WriteHeader(h); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if _, err := a.tar.Write(content); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// miss notes a part that could not be read.
func (a *archive) miss(path string, why error) {
	a.manifest.Missing = append(a.manifest.Missing, Part{Path: path, Reason: Scrub(why.Error())})
}

// close writes the manifest, and ends the archive.
func (a *archive) close() error {
	text, err := json.MarshalIndent(a.manifest, "", "  ")
	if err == nil {
		err = a.write(ManifestName, text)
	}
	return errors.Join(err, a.tar.Close(), a.gz.Close())
}

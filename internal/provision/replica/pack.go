package replica

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"io"
)

// pack makes a text shorter, in letters that every backend keeps. A record says the names of epochs, and of its own
// fields, again and again.
func pack(text []byte) []byte {
	var out bytes.Buffer
	letters := base64.NewEncoder(base64.RawStdEncoding, &out)
	w, _ := flate.NewWriter(letters, flate.BestCompression) // fails for an unknown level only
	_, _ = w.Write(text)                                    // a buffer takes everything
	_, _ = w.Close(), letters.Close()
	return out.Bytes()
}

// unpacked is how many bytes a text has at most that is not damaged.
const unpacked = 1 << 20

// unpack returns the text that was packed, and a plain one as it is.
func unpack(text []byte) ([]byte, error) {
	if text[0] == '{' {
		return text, nil
	}
	r := flate.NewReader(base64.NewDecoder(base64.RawStdEncoding, bytes.NewReader(text)))
	return io.ReadAll(io.LimitReader(r, unpacked))
}

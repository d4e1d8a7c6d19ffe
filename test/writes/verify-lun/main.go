// Command verify-lun judges the disk that a writer wrote to, by a file with its content: no acknowledged
// record is lost, none of an older writer comes after a newer one's, the sequence is complete, and each
// checksum is right.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"berth.dev/berth/test/writes"
)

func main() {
	acks := flag.String("acknowledged", "", "file with the writers' acknowledgements, among any other lines; empty means none")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "usage: verify-lun [-acknowledged LINES] FILE\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := verify(os.Stdout, flag.Arg(0), *acks); err != nil {
		fmt.Fprintln(os.Stderr, "verify-lun:", err)
		os.Exit(1)
	}
}

func verify(out io.Writer, path, acks string) (err error) {
	acknowledged, err := read(acks)
	if err != nil {
		return err
	}
	disk, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, disk.Close()) }()
	size, err := disk.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	v, err := writes.Judge(disk, size, acknowledged)
	if err != nil {
		return err
	}
	for _, fault := range v.Faults {
		fmt.Fprintln(out, fault)
	}
	fmt.Fprintf(out, "%d records of %d writers, %d acknowledged, %d faults\n", v.Records, v.Terms, len(acknowledged), len(v.Faults))
	if len(v.Faults) > 0 {
		return fmt.Errorf("%s is not sound", path)
	}
	return nil
}

// read returns the acknowledgements among the lines of a file.
func read(path string) (out []writes.Acknowledgement, err error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if a, ok := writes.ParseAcknowledgement(lines.Text()); ok {
			out = append(out, a)
		}
	}
	return out, lines.Err()
}

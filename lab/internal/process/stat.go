package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// stat holds the fields of /proc/PID/stat that the lab needs.
type stat struct {
	state     byte
	startTime uint64
}

func readStat(pid int) (stat, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return stat{}, err
	}
	return parseStat(data)
}

// parseStat parses a line of /proc/PID/stat. The second field is the program's
// name in parentheses, which may itself contain spaces and parentheses. So parseStat
// counts the fields from the last closing parenthesis.
func parseStat(line []byte) (stat, error) {
	end := bytes.LastIndexByte(line, ')')
	fields := bytes.Fields(line[end+1:])
	if end < 0 || len(fields) < 20 {
		return stat{}, fmt.Errorf("parsing process state %q: too few fields", line)
	}
	start, err := strconv.ParseUint(string(fields[19]), 10, 64)
	if err != nil {
		return stat{}, fmt.Errorf("parsing process start time: %w", err)
	}
	return stat{state: fields[0][0], startTime: start}, nil
}

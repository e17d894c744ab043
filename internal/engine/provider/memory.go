package provider

import (
	"os"
	"strconv"
	"strings"
)

// ownMemory returns RssAnon from a file /proc/PID/status, in bytes, or zero.
func ownMemory(file string) int64 {
	content, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[0] != "RssAnon:" {
			continue
		}
		kib, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			return 0
		}
		return kib << 10
	}
	return 0
}

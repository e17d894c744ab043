// Package calls counts the requests to a simulated infrastructure.
package calls

import (
	"maps"
	"sync"
)

// Login begins the names of requests that sign in, and Poll those of requests that wait for an operation.
const (
	Login = "login: "
	Poll  = "poll: "
)

// Log counts requests by name. The zero value is empty.
type Log struct {
	mutex sync.Mutex
	made  map[string]int
}

// Note counts a request.
func (l *Log) Note(name string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.made == nil {
		l.made = map[string]int{}
	}
	l.made[name]++
}

// Made returns the requests so far.
func (l *Log) Made() map[string]int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return maps.Clone(l.made)
}

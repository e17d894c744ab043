package offline

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// unconfiguredTimeout bounds a call of an unconfigured provider, which has nothing to wait for.
const unconfiguredTimeout = 20 * time.Second

// unconfigured serialises calls of unconfigured providers, and remembers calls that crashed a provider.
type unconfigured struct {
	mu      sync.Mutex
	crashed map[string]bool
}

// unconfiguredPurpose is for processes that may crash; another process validates arguments.
const unconfiguredPurpose = " unconfigured"

// callUnconfigured returns a caller of the unconfigured provider.
func (m *module) callUnconfigured(file string) caller {
	return func(ctx context.Context, method string, request []byte) ([]byte, error) {
		m.unconfigured.mu.Lock()
		defer m.unconfigured.mu.Unlock()
		kind, err := resourceType(request)
		if err != nil {
			return nil, err
		}
		call := file + " " + method + " " + kind
		if m.unconfigured.crashed[call] {
			return nil, status.Error(codes.Unavailable, "the provider crashed in the same call before")
		}
		m.mu.Lock()
		running, err := m.start(file, unconfiguredPurpose)
		m.mu.Unlock()
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(ctx, unconfiguredTimeout)
		defer cancel()
		response, err := running.Call(ctx, method, request)
		if code := status.Code(err); code == codes.Unavailable || code == codes.DeadlineExceeded {
			if m.unconfigured.crashed == nil {
				m.unconfigured.crashed = map[string]bool{}
			}
			m.unconfigured.crashed[call] = true
			err = errors.Join(err, m.end(running))
		}
		return response, err
	}
}

// end ends a provider's process. The next use starts another.
func (m *module) end(running *plugin) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, one := range m.plugins {
		if one == running {
			delete(m.plugins, key)
		}
	}
	return running.Close()
}

package bridge

import (
	"context"

	"google.golang.org/grpc/stats"
)

type connectionKey struct{}

// connections tracks which connection a call came from, and when a connection ends.
type connections struct{ relay *Relay }

var _ stats.Handler = connections{}

// TagConn implements stats.Handler.
func (connections) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	return context.WithValue(ctx, connectionKey{}, &connection{})
}

// HandleConn implements stats.Handler.
func (c connections) HandleConn(ctx context.Context, of stats.ConnStats) {
	ended, ok := ctx.Value(connectionKey{}).(*connection)
	if _, end := of.(*stats.ConnEnd); !end || !ok {
		return
	}
	ended.mu.Lock()
	defer ended.mu.Unlock()
	if ended.bridge != nil {
		c.relay.release(ended.bridge)
		ended.bridge = nil
	}
}

// TagRPC implements stats.Handler.
func (connections) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC implements stats.Handler.
func (connections) HandleRPC(context.Context, stats.RPCStats) {}

package offline

import (
	"context"
	"errors"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// connection is a connection to a real provider.
type connection struct {
	client  *grpc.ClientConn
	service string
}

func dial(to func(context.Context) (net.Conn, error), protocol int) (*connection, error) {
	client, err := grpc.NewClient("passthrough:///provider", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return to(ctx) }),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(newFrames()), grpc.MaxCallRecvMsgSize(maxMessage),
			grpc.MaxCallSendMsgSize(maxMessage)))
	if err != nil {
		return nil, fmt.Errorf("connecting to a provider: %w", err)
	}
	return &connection{client: client, service: fmt.Sprintf("/tfplugin%d.Provider/", protocol)}, nil
}

// call forwards a request unchanged.
func (c *connection) call(ctx context.Context, method string, request []byte) ([]byte, error) {
	var response frame
	sent := frame(request)
	if err := c.client.Invoke(ctx, method, &sent, &response); err != nil {
		return nil, err
	}
	return response, nil
}

func (c *connection) schemas(ctx context.Context) ([]byte, error) {
	method := "GetSchema"
	if c.service != "/tfplugin5.Provider/" {
		method = "GetProviderSchema"
	}
	response, err := c.call(ctx, c.service+method, nil)
	switch {
	case err != nil && ctx.Err() != nil:
		err = ctx.Err() // gRPC has an error of its own for it
	case err == nil && len(response) == 0:
		err = errors.New("its response is empty")
	}
	if err != nil {
		return nil, fmt.Errorf("asking a provider for its schemas: %w", err)
	}
	return response, nil
}

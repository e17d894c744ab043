package offline

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path"
	"path/filepath"

	"github.com/hashicorp/terraform-exec/tfexec"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
)

// maxMessage bounds a message of the plugin protocol; the schemas of the largest providers have some 100 MB.
const maxMessage = 512 << 20

// Severities of the plugin protocol.
const severityError = 1

// frame is a message that is passed on as it is.
type frame []byte

// frames is a codec that leaves messages as they are, and has all others encoded as usual.
type frames struct{ encoding.CodecV2 }

func newFrames() frames { return frames{encoding.GetCodecV2("proto")} }

// Marshal implements encoding.CodecV2.
func (c frames) Marshal(v any) (mem.BufferSlice, error) {
	if one, ok := v.(*frame); ok {
		return mem.BufferSlice{mem.SliceBuffer(*one)}, nil
	}
	return c.CodecV2.Marshal(v)
}

// Unmarshal implements encoding.CodecV2.
func (c frames) Unmarshal(data mem.BufferSlice, v any) error {
	if one, ok := v.(*frame); ok {
		*one = data.Materialize()
		return nil
	}
	return c.CodecV2.Unmarshal(data, v)
}

// asker asks a provider itself.
type asker func(ctx context.Context, method string, request frame) (frame, error)

// standIn answers an engine in place of one provider. It is never configured and has no state, so that any number of engines may talk
// to it at once, but for one with a past.
type standIn struct {
	schemas   frame
	resources map[string]block
	// legacy says that it speaks protocol 5.
	legacy bool
	ask    asker
	// past is what it knows of what exists; nil for nothing.
	past *past

	server  *grpc.Server
	address net.Addr
}

// newStandIn serves a stand-in on a socket in dir.
func newStandIn(dir string, schemas []byte, protocol int, ask asker, known *past, more ...grpc.ServerOption) (*standIn, error) {
	resources, err := resourceSchemas(schemas)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		return nil, fmt.Errorf("listening in place of a provider: %w", err)
	}
	s := &standIn{schemas: schemas, resources: resources, legacy: protocol == 5, ask: ask, past: known, address: listener.Addr()}
	s.server = grpc.NewServer(append(more, grpc.ForceServerCodecV2(newFrames()), grpc.UnknownServiceHandler(s.serve),
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage))...)
	alive := health.NewServer()
	alive.SetServingStatus("plugin", grpc_health_v1.HealthCheckResponse_SERVING)
	grpc_health_v1.RegisterHealthServer(s.server, alive)
	go func() { _ = s.server.Serve(listener) }() // it ends when it is stopped
	return s, nil
}

// reattach is what an engine needs to use it.
func (s *standIn) reattach(protocol int) tfexec.ReattachConfig {
	return tfexec.ReattachConfig{
		Protocol: "grpc", ProtocolVersion: protocol, Pid: os.Getpid(), Test: true,
		Addr: tfexec.ReattachConfigAddr{Network: s.address.Network(), String: s.address.String()},
	}
}

// serve answers one call.
func (s *standIn) serve(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	var request frame
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	response, err := s.answer(stream.Context(), method, request)
	if err != nil {
		return err
	}
	return stream.SendMsg(&response)
}

func (s *standIn) answer(ctx context.Context, method string, request frame) (frame, error) {
	switch path.Base(method) {
	case "GetSchema", "GetProviderSchema":
		return s.schemas, nil
	case "PrepareProviderConfig": // the answer has the configuration where the request has it
		return request, nil
	case "ValidateProviderConfig", "Configure", "ConfigureProvider", "Stop", "StopProvider":
		return nil, nil
	case "PlanResourceChange":
		return s.plan(ctx, method, request)
	case "UpgradeResourceState":
		return s.past.upgrade(ctx, method, request)
	case "ReadDataSource":
		return s.past.read(request)
	case "ValidateResourceTypeConfig", "ValidateResourceConfig", "ValidateDataSourceConfig", "ValidateDataResourceConfig",
		"GetFunctions", "CallFunction":
		return s.ask(ctx, method, request)
	case "OpenEphemeralResource", "ReadResource", "ApplyResourceChange", "ImportResourceState":
		return nil, status.Errorf(codes.Unavailable, "%s needs the infrastructure, which an offline plan does without", path.Base(method))
	}
	return nil, status.Errorf(codes.Unimplemented, "%s is not implemented", method)
}

// planned is what is read of a PlanResourceChange.Request.
type planned struct {
	kind            string
	prior, proposed []byte
}

func readPlanned(request frame) (planned, error) {
	var read planned
	err := eachField(request, func(number protowire.Number, _ uint64, content []byte) (err error) {
		switch number {
		case 1:
			read.kind = string(content)
		case 2:
			read.prior, err = packedOf(content)
		case 3:
			read.proposed, err = packedOf(content)
		}
		return err
	})
	return read, err
}

// packedOf answers the value of a DynamicValue that is written as MessagePack; nil where it is not.
func packedOf(message []byte) (value []byte, err error) {
	err = eachField(message, func(number protowire.Number, _ uint64, content []byte) error {
		if number == 1 {
			value = content
		}
		return nil
	})
	return value, err
}

// plan answers PlanResourceChange.
func (s *standIn) plan(ctx context.Context, method string, request frame) (frame, error) {
	read, err := readPlanned(request)
	if err != nil {
		return nil, fmt.Errorf("reading what to plan: %w", err)
	}
	schema, known := s.resources[read.kind]
	if !known || read.proposed == nil {
		return nil, fmt.Errorf("planning %q: its schema or its configuration is missing", read.kind)
	}
	var value []byte
	switch {
	case s.past == nil || read.prior == nil || isNull(read.prior):
		value, err = schema.foresee(read.proposed, s.legacy)
	case isNull(read.proposed): // it is removed
		value = packedNull
	default:
		if answer, told := s.past.plan(ctx, method, request, read); told {
			return answer, nil
		}
		value, err = schema.keep(read.prior, read.proposed, s.past.written(read.kind))
	}
	if err != nil {
		return nil, fmt.Errorf("planning %q: %w", read.kind, err)
	}
	response := appendField(nil, 1, appendField(nil, 1, value))
	if s.legacy {
		response = protowire.AppendVarint(protowire.AppendTag(response, 5, protowire.VarintType), 1)
	}
	return response, nil
}

func (s *standIn) close() { s.server.Stop() }

// connection is one to a provider itself.
type connection struct {
	client  *grpc.ClientConn
	service string
}

// dial connects to a provider that serves a protocol at an address.
func dial(network, address string, protocol int) (*connection, error) {
	client, err := grpc.NewClient("passthrough:///provider", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, address)
		}),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(newFrames()), grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)))
	if err != nil {
		return nil, fmt.Errorf("connecting to a provider: %w", err)
	}
	return &connection{client: client, service: fmt.Sprintf("/tfplugin%d.Provider/", protocol)}, nil
}

func (c *connection) ask(ctx context.Context, method string, request frame) (frame, error) {
	var response frame
	if err := c.client.Invoke(ctx, method, &request, &response); err != nil {
		return nil, err
	}
	return response, nil
}

// schemas asks for all schemas.
func (c *connection) schemas(ctx context.Context) ([]byte, error) {
	method := "GetSchema"
	if c.service != "/tfplugin5.Provider/" {
		method = "GetProviderSchema"
	}
	answer, err := c.ask(ctx, c.service+method, nil)
	if err == nil && len(answer) == 0 {
		err = errors.New("it answers nothing")
	}
	if err != nil {
		return nil, fmt.Errorf("asking a provider for its schemas: %w", err)
	}
	return answer, nil
}

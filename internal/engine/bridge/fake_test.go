package bridge

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// starts is set for bridges that start a provider.
const starts = "BRIDGE_WITH_A_PROVIDER"

// beBridge is a bridge that writes what it is asked into a file, and responds with its process and that. It lets itself be parameterized once.
func beBridge() {
	log, err := os.OpenFile(os.Getenv(echoes), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	if os.Getenv(starts) != "" {
		if err := exec.Command("/bin/sleep", "300").Start(); err != nil {
			panic(err)
		}
	}
	var parameterized bool
	server := grpc.NewServer(grpc.ForceServerCodec(codec{}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		method, _ := grpc.MethodFromServerStream(stream)
		message := &frame{}
		if err := stream.RecvMsg(message); err != nil {
			return err
		}
		if !strings.HasPrefix(method, service) {
			return status.Error(codes.Unimplemented, method)
		}
		said := fmt.Sprintf("%d %s %s", os.Getpid(), filepath.Base(method), message.content)
		if _, err := fmt.Fprintln(log, said); err != nil {
			return err
		}
		if method == parameterize {
			if parameterized {
				return status.Error(codes.Unknown, "provider is already parameterized")
			}
			parameterized = true
		}
		return stream.SendMsg(&frame{content: []byte(said)})
	}))
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	_ = server.Serve(listener) // until it is killed
}

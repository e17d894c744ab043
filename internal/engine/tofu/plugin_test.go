package tofu

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAPluginByItself(t *testing.T) {
	files, err := filepath.Glob("../../../bin/mirror/registry.opentofu.org/gavinbunney/kubectl/*/*/terraform-provider-kubectl*")
	if err != nil || len(files) != 1 {
		t.Fatalf("want one provider, got %v, %v; run 'make tools'", files, err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "p")
	file, err := filepath.Abs(files[0])
	if err != nil {
		t.Fatal(err)
	}
	plugin, err := StartPlugin(dir, file, nil, preferred(t))
	if err != nil {
		t.Fatal(err)
	}
	if got := plugin.ProtocolVersion(); got != 5 && got != 6 {
		t.Errorf("it speaks protocol %d", got)
	}
	connection, err := plugin.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	connection.Close() //nolint:errcheck // it was only tried
	if err := plugin.End(); err != nil {
		t.Fatal(err)
	}
	if _, err := plugin.Dial(t.Context()); err == nil {
		t.Error("it still listens after its end")
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("its folder is left behind: %v", err)
	}
}

func TestReadStream(t *testing.T) {
	report := ReadStream([]byte(`{"@level":"error","type":"diagnostic","diagnostic":{"severity":"error","summary":"no t0p-secret"}}`+"\n"+
		`{"@level":"warn","type":"diagnostic","diagnostic":{"severity":"warning","summary":"careful"}}`), []string{"t0p-secret"})
	if len(report.Diagnostics) != 2 || len(report.Errors()) != 1 || strings.Contains(report.Errors()[0].Summary, "t0p") {
		t.Errorf("it returns %+v", report)
	}
}

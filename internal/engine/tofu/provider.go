package tofu

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/terraform-exec/tfexec"

	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
	"github.com/machine-iac/machine-iac-operator/internal/engine/workdir"
)

// providersOf returns the files of the provider plugins that an initialised module uses, by the providers' addresses.
func providersOf(module string) (map[string]string, error) {
	dir := filepath.Join(module, moduleDir)
	content, err := os.ReadFile(filepath.Join(dir, lockFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("finding the module's providers: %w", err)
	}
	selected, err := parseLockFile(content)
	if err != nil {
		return nil, fmt.Errorf("finding the module's providers: %w", err)
	}
	found := map[string]string{}
	for address, provider := range selected {
		platform := filepath.Join(dir, dataDir, "providers", filepath.FromSlash(address), provider.Version, runtime.GOOS+"_"+runtime.GOARCH)
		files, err := filepath.Glob(filepath.Join(platform, "terraform-provider-"+path.Base(address)+"*"))
		if err != nil {
			return nil, fmt.Errorf("finding the provider %s: %w", address, err)
		}
		if len(files) == 0 {
			continue // selected, but not used by the module
		}
		if found[address], err = filepath.EvalSymlinks(files[0]); err != nil {
			return nil, fmt.Errorf("finding the provider %s: %w", address, err)
		}
	}
	return found, nil
}

// providerKey returns the same for runs that may use one provider process after another: those with the same file and the same environment,
// hence the same credentials.
func providerKey(file string, environment map[string]string) string {
	hash := sha256.New()
	fmt.Fprintf(hash, "%q\n", file)
	for _, name := range slices.Sorted(maps.Keys(environment)) {
		fmt.Fprintf(hash, "%q=%q\n", name, environment[name])
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// The handshake between an engine and a provider plugin.
var providerHandshake = plugin.HandshakeConfig{
	ProtocolVersion:  5,
	MagicCookieKey:   "TF_PLUGIN_MAGIC_COOKIE",
	MagicCookieValue: "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2",
}

// providerStartTimeout bounds the wait for a provider to be ready.
const providerStartTimeout = 30 * time.Second

// provider is a provider plugin that runs. It serves one run at a time: an interrupt cancels every call in its process, and its
// configuration is global to it.
type provider struct {
	dir    string
	client *plugin.Client
	config tfexec.ReattachConfig
	ended  chan struct{} // closed once it is to end
	once   sync.Once
}

// startProvider starts the plugin in a folder of its own, which has its socket and is all that it writes into.
func startProvider(dir, file string, environment map[string]string, confined *sandbox.Sandbox) (*provider, error) {
	if err := confined.Check(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("starting the provider %s: %w", filepath.Base(file), err)
	}
	command := exec.Command(file)
	command.Dir = dir
	command.SysProcAttr = workdir.ChildAttributes()
	command.Env = []string{"HOME=" + dir, "TMPDIR=" + dir}
	for name, value := range environment {
		command.Env = append(command.Env, name+"="+value)
	}
	confined.Wrap(command, sandbox.Policy{Read: []string{filepath.Dir(file)}, Write: []string{dir}})
	client := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  providerHandshake,
		VersionedPlugins: map[int]plugin.PluginSet{5: {}, 6: {}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		Cmd:              command,
		SkipHostEnv:      true,
		StartTimeout:     providerStartTimeout,
		Logger:           hclog.NewNullLogger(),
	})
	p := &provider{dir: dir, client: client, ended: make(chan struct{})}
	if err := p.start(); err != nil {
		// its text may repeat what the plugin wrote
		return nil, errors.Join(fmt.Errorf("starting the provider %s failed", filepath.Base(file)), p.end())
	}
	address := client.ReattachConfig()
	p.config = tfexec.ReattachConfig{
		Protocol:        string(address.Protocol),
		ProtocolVersion: client.NegotiatedVersion(),
		Pid:             address.Pid,
		Test:            true, // the engine leaves it running
		Addr:            tfexec.ReattachConfigAddr{Network: address.Addr.Network(), String: address.Addr.String()},
	}
	return p, nil
}

// start starts the plugin on a thread that stays until the plugin's end: the plugin dies with the thread that starts it.
func (p *provider) start() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		_, err := p.client.Start()
		started <- err
		<-p.ended
	}()
	return <-started
}

// reattach is what an engine needs to use it.
func (p *provider) reattach() tfexec.ReattachConfig { return p.config }

// exited reports whether the process is gone.
func (p *provider) exited() bool { return p.client.Exited() }

// end kills the process and waits for it. It is not asked to stop first: it may be in the middle of a call that nothing waits for.
func (p *provider) end() error {
	_, err := workdir.KillProcesses(p.dir)
	p.client.Kill()
	p.once.Do(func() { close(p.ended) })
	return errors.Join(err, os.RemoveAll(p.dir))
}

package source

import (
	"bytes"
	"context"
	"crypto"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-containerregistry/pkg/authn"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
)

const (
	// defaultTimeout is less than the time after which a starting Pod is restarted.
	defaultTimeout = 40 * time.Second
	// maxParallel is how many modules are fetched concurrently.
	maxParallel = 8
)

// Options configure how modules are fetched and pushed. The zero value is usable.
type Options struct {
	// CacheDir stores downloads by digest, so that each is downloaded once. Nothing is ever removed
	// from it, but the whole folder can be. Empty disables caching.
	CacheDir string
	// Keychain has the credentials of registries. Defaults to Docker's configuration in DOCKER_CONFIG
	// or ~/.docker.
	Keychain authn.Keychain
	// Transport makes the requests. Defaults to one that uses the proxies and CAs from the
	// environment.
	Transport http.RoundTripper
	// Timeout limits a call, including all modules and retries. Defaults to 40 s.
	Timeout time.Duration
	// Backoff configures retries of downloads. Defaults to five attempts within about 15 s.
	Backoff wait.Backoff
	// SignedBy are keys, one of which must have signed an artifact of a registry. If empty, signatures
	// are not required. Other sources are verified by digest only.
	SignedBy []crypto.PublicKey
	// Logger logs failed attempts and cache failures. Defaults to discarding them.
	Logger logr.Logger
}

func (o Options) withDefaults() Options {
	if o.Keychain == nil {
		o.Keychain = authn.DefaultKeychain
	}
	if o.Transport == nil {
		o.Transport = defaultTransport
	}
	o.Transport = &boundedTransport{inner: o.Transport}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.Backoff.Steps == 0 {
		o.Backoff = wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.2, Steps: 5}
	}
	return o
}

// Fetch loads the module of a reference. Content with another digest is rejected.
func Fetch(ctx context.Context, reference string, options Options) (*module.Module, error) {
	files, err := Files(ctx, reference, options)
	if err != nil {
		return nil, err
	}
	loaded, err := load.Module(files)
	if err != nil {
		location, _ := ParseReference(reference) // Files has parsed it
		return nil, fmt.Errorf("loading the module from %s: %w", location, err)
	}
	return loaded, nil
}

// FetchAll loads the modules of the references, in order. The error joins those of all references.
func FetchAll(ctx context.Context, references []string, options Options) ([]*module.Module, error) {
	options.Timeout = options.withDefaults().Timeout
	ctx, cancel := context.WithTimeout(ctx, options.Timeout)
	defer cancel()
	loaded, failed := make([]*module.Module, len(references)), make([]error, len(references))
	var group errgroup.Group
	group.SetLimit(maxParallel)
	for i, reference := range references {
		group.Go(func() error {
			loaded[i], failed[i] = Fetch(ctx, reference, options)
			return nil
		})
	}
	_ = group.Wait() // failed has every error
	if err := errors.Join(failed...); err != nil {
		return nil, err
	}
	return loaded, nil
}

// Files returns the files of a reference's module in memory, before any check of the contract.
func Files(ctx context.Context, reference string, options Options) (fs.FS, error) {
	parsed, err := ParseReference(reference)
	if err != nil {
		return nil, fmt.Errorf("parsing the module's reference: %w", err)
	}
	options = options.withDefaults()
	ctx, cancel := context.WithTimeout(ctx, options.Timeout)
	defer cancel()
	fetcher := &fetcher{Options: options, cache: cache{dir: options.CacheDir, logger: options.Logger}}
	archive, err := fetcher.archive(ctx, parsed)
	if err != nil {
		return nil, fmt.Errorf("fetching the module from %s: %w", parsed, err)
	}
	files, err := module.ReadArchive(bytes.NewReader(archive))
	if err != nil {
		return nil, fmt.Errorf("fetching the module from %s: %w", parsed, err)
	}
	return files, nil
}

// fetcher fetches one module.
type fetcher struct {
	Options
	cache cache
}

// archive returns the tar.gz of a reference.
func (f *fetcher) archive(ctx context.Context, reference Reference) ([]byte, error) {
	switch reference.location.Scheme {
	case schemeFile:
		content, err := readFile(reference.location.Path)
		if err != nil {
			return nil, err
		}
		return content, checkDigest(content, reference.digest)
	case schemeHTTPS:
		return f.content(ctx, reference.digest, func(ctx context.Context) ([]byte, error) {
			return f.download(ctx, reference.location)
		})
	default:
		return f.artifact(ctx, reference)
	}
}

// content returns the content with the digest, from the cache or else from get. It retries get if
// that may help.
func (f *fetcher) content(ctx context.Context, digest string,
	get func(context.Context) ([]byte, error)) ([]byte, error) {
	if content, cached := f.cache.get(digest); cached {
		return content, nil
	}
	var content []byte
	err := f.retry(ctx, func(ctx context.Context) (err error) {
		content, err = get(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := checkDigest(content, digest); err != nil {
		return nil, err
	}
	f.cache.put(digest, content)
	return content, nil
}

func checkDigest(content []byte, want string) error {
	if got := digestOf(content); got != want {
		return fmt.Errorf("the content has the digest %s, which is not that of the reference; find out who changed it before you change the reference", got)
	}
	return nil
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// readFile reads an archive from disk.
func readFile(path string) (content []byte, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // opening a pipe would block
		return nil,
			fmt.Errorf("%s is not a regular file; use a file from 'kubectl machine module pack', or a folder with --module-dir",
				path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return readBounded(file)
}

// readBounded reads a possible archive.
func readBounded(r io.Reader) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, module.MaxArchiveBytes+1))
	if err == nil && len(content) > module.MaxArchiveBytes {
		err = errTooLarge
	}
	return content, err
}

var errTooLarge = fmt.Errorf("it has more than %d bytes; is it the archive of one module?", module.MaxArchiveBytes)

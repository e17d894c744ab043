package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"sigs.k8s.io/yaml"
)

const (
	// registry is the repository of released images.
	registry = "ghcr.io/machine-iac/machine-iac-operator"
	// treeImage and treeTag are the image in install/kubernetes.
	treeImage = "machine-iac-operator"
	treeTag   = "latest"

	sums = "SHA256SUMS"
	mode = 0o644
)

// released matches a version: Semantic Versioning with a v. Helm accepts no other, and image tags allow no +.
var released = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`)

type release struct {
	version string
	// image is the full reference; repository, tag and digest are its parts.
	image, repository, tag, digest string
}

func newRelease(version, image string) (*release, error) {
	if !released.MatchString(version) {
		return nil, fmt.Errorf("the version is %q: write it as v1.2.3 or v1.2.3-rc.1 (make release VERSION=v1.2.3)",
			version)
	}
	if image == "" {
		image = registry + ":" + version
	}
	if _, err := name.ParseReference(image); err != nil {
		return nil,
			fmt.Errorf("the image is %q: write it as registry.example/machine-iac-operator:%s, or with @sha256:...: %w",
				image, version, err)
	}
	r := &release{version: version, image: image}
	r.repository, r.digest, _ = strings.Cut(image, "@")
	if colon := strings.LastIndex(r.repository, ":"); colon > strings.LastIndex(r.repository, "/") {
		r.repository, r.tag = r.repository[:colon], r.repository[colon+1:]
	}
	if r.tag == "" && r.digest == "" {
		return nil, fmt.Errorf("the image is %q, without a version: write %s:%s, or add its digest", image, image,
			version)
	}
	return r, nil
}

// number returns the version without the v, for Helm and the Operator Lifecycle Manager.
func (r *release) number() string { return strings.TrimPrefix(r.version, "v") }

// write writes the release into a folder and keeps other files there.
func (r *release) write(root, folder string, out io.Writer) error {
	from, err := read(root)
	if err != nil {
		return err
	}
	for _, one := range from.objects {
		replace(one.Object, treeImage+":"+treeTag, r.image)
	}
	made := files{}
	for _, add := range []func(source, files) error{r.manifest, r.payload, r.chart, r.bundle} {
		if err := add(from, made); err != nil {
			return err
		}
	}
	if err := removeOld(folder); err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for _, one := range slices.Sorted(maps.Keys(made)) {
		file := filepath.Join(folder, one)
		if err := os.WriteFile(file, made[one], mode); err != nil {
			return err
		}
		fmt.Fprintln(out, file)
	}
	fmt.Fprintln(out, filepath.Join(folder, sums))
	return checksums(folder)
}

// manifest adds crds.yaml, and install.yaml with everything else: deleting the latter keeps the Machines.
func (r *release) manifest(from source, made files) error {
	var crds, rest []object
	for _, one := range from.objects {
		if one.GetKind() == "CustomResourceDefinition" {
			crds = append(crds, one)
		} else {
			rest = append(rest, one)
		}
	}
	definitions, err := documents("", crds...)
	if err != nil {
		return err
	}
	content, err := documents("", rest...)
	if err != nil {
		return err
	}
	if !bytes.Contains(content, []byte(r.image)) {
		return errors.New("install.yaml does not have the image of the release; see images of " +
			"install/kubernetes/kustomization.yaml")
	}
	text := fmt.Appendf(nil, "# machine-iac-operator %s: the operator, which installs the rest.\n"+
		"# kubectl create namespace %s && kubectl apply -f crds.yaml -f install.yaml\n", r.version, namespace)
	made["install.yaml"] = append(text, content...)
	made["crds.yaml"] = append(fmt.Appendf(nil, "# The CRDs of machine-iac-operator %s. Deleting them deletes all "+
		"Machines.\n", r.version), definitions...)
	return nil
}

// payload adds openshift.yaml: what the cluster-version operator applies to a cluster with the default feature set.
func (r *release) payload(from source, made files) error {
	packed := files{}
	if err := readFolder(filepath.Join(from.root, openshiftFolder), packed); err != nil {
		return err
	}
	out := fmt.Appendf(nil, "# machine-iac-operator %s for an OpenShift cluster without the capability MachineAPI: "+
		"kubectl apply -f openshift.yaml\n", r.version)
	for _, file := range slices.Sorted(maps.Keys(packed)) {
		_, set, gated := strings.Cut(strings.TrimSuffix(file, ".crd.yaml"), ".")
		if path.Ext(file) != ".yaml" || strings.HasSuffix(file, ".crd.yaml") && gated && set != featureSets[0] {
			continue
		}
		out = append(append(out, "---\n"...), packed[file]...)
	}
	out = bytes.ReplaceAll(out, []byte(payloadImage), []byte(r.image))
	made["openshift.yaml"] = bytes.ReplaceAll(out, []byte(payloadVersion), []byte(r.number()))
	return nil
}

// chart adds the chart as packed by helm package.
func (r *release) chart(from source, made files) error {
	packed := files{}
	if err := readFolder(filepath.Join(from.root, chartFolder), packed); err != nil {
		return err
	}
	for file, change := range map[string]map[string]any{
		"Chart.yaml":  {"version": r.number(), "appVersion": r.version},
		"values.yaml": {"repository": r.repository, "tag": r.tag, "digest": r.digest},
	} {
		for key, value := range change {
			var err error
			if packed[file], err = set(packed[file], key, fmt.Sprint(value)); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
		}
	}
	content, err := pack(bundleName, packed)
	made[fmt.Sprintf("%s-%s.tgz", bundleName, r.number())] = content
	return err
}

// set changes the only field of this name in a file, and keeps comments.
func set(content []byte, key, value string) ([]byte, error) {
	line := regexp.MustCompile(`(?m)^( *` + key + `:) *("[^"]*"|[^\s#]*)`)
	if found := len(line.FindAll(content, -1)); found != 1 {
		return nil, fmt.Errorf("%d fields are called %s; a release changes one", found, key)
	}
	return line.ReplaceAll(content, []byte(`${1} "`+value+`"`)), nil
}

func (r *release) bundle(from source, made files) error {
	generated, packed := files{}, files{}
	if err := bundle(from, generated); err != nil {
		return err
	}
	if err := readFolder(filepath.Join(from.root, bundleFolder), packed); err != nil {
		return err
	}
	for file, content := range generated {
		packed[strings.TrimPrefix(file, bundleFolder+"/")] = content
	}
	file := path.Join("manifests", bundleName+".clusterserviceversion.yaml")
	version := map[string]any{}
	if err := yaml.Unmarshal(packed[file], &version); err != nil {
		return err
	}
	at(version, "metadata")["name"] = bundleName + "." + r.version
	at(version, "spec")["version"] = r.number()
	content, err := yaml.Marshal(version)
	if err != nil {
		return err
	}
	packed[file] = content
	content, err = pack("bundle", packed)
	made[fmt.Sprintf("%s-olm-%s.tgz", bundleName, r.number())] = content
	return err
}

// readFolder reads a folder's files by their paths in it.
func readFolder(folder string, into files) error {
	return filepath.WalkDir(folder, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		inside, err := filepath.Rel(folder, file)
		if err != nil {
			return err
		}
		into[filepath.ToSlash(inside)], err = os.ReadFile(file)
		return err
	})
}

// pack returns a reproducible archive of files in a folder.
func pack(folder string, packed files) ([]byte, error) {
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	archive := tar.NewWriter(zipped)
	for _, one := range slices.Sorted(maps.Keys(packed)) {
		header := &tar.Header{Name: path.Join(folder, one), Mode: mode,
			Size: int64(len(packed[one])), Format: tar.FormatUSTAR}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(packed[one]); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(archive.Close(), zipped.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// removeOld removes charts and bundles of other versions.
func removeOld(folder string) error {
	old, err := filepath.Glob(filepath.Join(folder, bundleName+"-*.tgz"))
	for _, one := range old {
		err = errors.Join(err, os.Remove(one))
	}
	return err
}

// checksums writes the checksums of a folder's files in the format of sha256sum --check.
func checksums(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, entry := range entries {
		if entry.IsDir() || entry.Name() == sums {
			continue
		}
		content, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%x  %s\n", sha256.Sum256(content), entry.Name())
	}
	return os.WriteFile(filepath.Join(folder, sums), []byte(lines.String()), mode)
}

package main

import (
	"crypto/sha1" // SPDX requires it in addition to SHA-256
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

const (
	// sbomFile is the path of the SBOM in the image, sbomType the media type of its copy beside the image.
	sbomFile = share + "/sbom.spdx.json"
	sbomType = "application/spdx+json"
	// self is the programs' module; its version is the image's.
	self        = "github.com/machine-iac/machine-iac-operator"
	imageID     = "SPDXRef-Image"
	noAssertion = "NOASSERTION"
)

// document is an SPDX 2.3 document that lists the image's files, and the Go modules that the linker recorded in each
// program.
type document struct {
	Version       string         `json:"spdxVersion"`
	Licence       string         `json:"dataLicense"`
	ID            string         `json:"SPDXID"`
	Name          string         `json:"name"`
	Namespace     string         `json:"documentNamespace"`
	Creation      creation       `json:"creationInfo"`
	Packages      []spdxPackage  `json:"packages"`
	Files         []spdxFile     `json:"files"`
	Relationships []relationship `json:"relationships"`
}

type creation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type spdxPackage struct {
	ID         string      `json:"SPDXID"`
	Name       string      `json:"name"`
	Version    string      `json:"versionInfo,omitempty"`
	Download   string      `json:"downloadLocation"`
	Analyzed   bool        `json:"filesAnalyzed"`
	Licence    string      `json:"licenseConcluded"`
	Declared   string      `json:"licenseDeclared"`
	Copyright  string      `json:"copyrightText"`
	Purpose    string      `json:"primaryPackagePurpose,omitempty"`
	SourceInfo string      `json:"sourceInfo,omitempty"`
	References []reference `json:"externalRefs,omitempty"`
}

type reference struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type spdxFile struct {
	ID        string     `json:"SPDXID"`
	Name      string     `json:"fileName"`
	Checksums []checksum `json:"checksums"`
	Licence   string     `json:"licenseConcluded"`
	Copyright string     `json:"copyrightText"`
}

type checksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type relationship struct {
	From string `json:"spdxElementId"`
	Type string `json:"relationshipType"`
	To   string `json:"relatedSpdxElement"`
}

// list is the result of source.list.
type list struct {
	document []byte
	files    int
}

// list creates the SBOM of layers.
func (s source) list(platform v1.Platform, layers []layer) (list, error) {
	d := &document{
		Version: "SPDX-2.3", Licence: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: "machine-iac-operator",
		Creation: creation{Created: s.created.Format(time.RFC3339),
			Creators: []string{"Tool: " + self + "/hack/image"}},
		Packages: []spdxPackage{newPackage(imageID, "machine-iac-operator", s.version)},
	}
	d.Packages[0].Purpose = "CONTAINER"
	d.relate(d.ID, "DESCRIBES", imageID)
	content := sha256.New()
	for _, l := range layers {
		for _, f := range l.files {
			if !f.mode.IsRegular() {
				continue
			}
			sums, err := d.add(f, s.version)
			if err != nil {
				return list{}, err
			}
			fmt.Fprintln(content, f.path, sums)
		}
	}
	d.Namespace = fmt.Sprintf("https://machine-iac.io/sbom/%s/%s-%s/%x", url.PathEscape(s.version), platform.OS,
		platform.Architecture, content.Sum(nil)[:16])
	slices.SortFunc(d.Packages[1:],
		func(a, b spdxPackage) int { return strings.Compare(a.Name+"@"+a.Version, b.Name+"@"+b.Version) })
	out, err := json.MarshalIndent(d, "", " ")
	if err != nil {
		return list{}, fmt.Errorf("encoding the SBOM: %w", err)
	}
	return list{document: append(out, '\n'), files: len(d.Files)}, nil
}

// add adds a file and its modules, and returns its SHA-256.
func (d *document) add(f file, version string) (string, error) {
	opened, _, err := f.open()
	if err != nil {
		return "", err
	}
	weak, strong := sha1.New(), sha256.New()
	_, err = io.Copy(io.MultiWriter(weak, strong), opened)
	if err := errors.Join(err, opened.Close()); err != nil {
		return "", fmt.Errorf("reading the source of /%s: %w", f.path, err)
	}
	added := spdxFile{
		ID: "SPDXRef-File-" + identifier(f.path), Name: "./" + f.path, Licence: noAssertion, Copyright: noAssertion,
		Checksums: []checksum{{"SHA1", hex.EncodeToString(weak.Sum(nil))},
			{"SHA256", hex.EncodeToString(strong.Sum(nil))}},
	}
	d.Files = append(d.Files, added)
	d.relate(imageID, "CONTAINS", added.ID)
	switch {
	case f.path == authoritiesFile:
		d.relate(added.ID, "GENERATED_FROM",
			d.module(debug.Module{Path: authoritiesModule, Version: authoritiesVersion()}))
	case f.mode&0o111 != 0:
		info, err := buildinfo.ReadFile(f.from)
		if err != nil {
			return "", fmt.Errorf("reading the Go modules of /%s: %w", f.path, err)
		}
		d.addModules(added.ID, info, version)
	}
	return added.Checksums[1].Value, nil
}

// addModules adds the modules of a program.
func (d *document) addModules(program string, info *buildinfo.BuildInfo, version string) {
	main := info.Main
	if main.Path == self {
		main.Version = version
	}
	d.relate(program, "GENERATED_FROM", d.module(main))
	d.relate(program, "STATIC_LINK",
		d.module(debug.Module{Path: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go")}))
	for _, module := range info.Deps {
		for module.Replace != nil {
			module = module.Replace
		}
		d.relate(program, "STATIC_LINK", d.module(*module))
	}
}

// module returns the ID of a module, and adds it if missing.
func (d *document) module(m debug.Module) string {
	if m.Version == "(devel)" { // of this repository, whose tools have no versions
		m.Version = ""
	}
	id := "SPDXRef-Module-" + identifier(m.Path+"@"+m.Version)
	if slices.ContainsFunc(d.Packages, func(p spdxPackage) bool { return p.ID == id }) {
		return id
	}
	added := newPackage(id, m.Path, m.Version)
	added.Purpose = "LIBRARY"
	if m.Sum != "" {
		added.SourceInfo = "checksum in go.sum: " + m.Sum
	}
	if m.Version != "" {
		locator := "pkg:golang/" + m.Path + "@" + url.QueryEscape(m.Version)
		added.References = []reference{{Category: "PACKAGE-MANAGER", Type: "purl", Locator: locator}}
	}
	d.Packages = append(d.Packages, added)
	return id
}

func authoritiesVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, module := range info.Deps {
		if module.Path == authoritiesModule {
			return module.Version
		}
	}
	return ""
}

func (d *document) relate(from, what, to string) {
	d.Relationships = append(d.Relationships, relationship{From: from, Type: what, To: to})
}

func newPackage(id, name, version string) spdxPackage {
	return spdxPackage{
		ID: id, Name: name, Version: version, Download: noAssertion, Licence: noAssertion,
		Declared: noAssertion, Copyright: noAssertion,
	}
}

// identifier returns a unique name that SPDX allows.
func identifier(name string) string {
	sum := sha256.Sum256([]byte(name))
	readable := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' {
			return r
		}
		return '-'
	}, path.Base(name))
	return readable + "-" + hex.EncodeToString(sum[:6])
}

package offline

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
)

// Names in the engine's folder.
const (
	rootFile  = "main.tf.json"
	moduleDir = "module"
	lockFile  = ".terraform.lock.hcl"
	// laterFile holds the resource that data sources wait for.
	laterFile = "machine_iac_later.tf"
	laterName = "terraform_data.machine_iac_later"
	laterCall = "machine_iac_later"
)

// clusterVariable is optional in a module.
const clusterVariable = "cluster"

// later defines the resource that data sources wait for. Without it they wait for nothing.
const later = `variable "` + laterCall + `" {
  type = bool
}

variable "` + onceVariable + `" {
  type = list(string)
}

resource "terraform_data" "machine_iac_later" {
  count = var.` + laterCall + ` ? 1 : 0
}
`

// source is a module prepared for plans.
type source struct {
	// files maps paths to contents.
	files map[string][]byte
	// kinds are the types of the module's resources and data sources.
	kinds map[string]bool
	// resources record what each resource sets, by type and name.
	resources map[[2]string]*configured
	// cluster reports that the module declares the variable cluster.
	cluster bool
	// configured are the module's local names of providers that it configures.
	configured map[string]bool
}

// newSource returns the module's files with deferred data sources, and a root module that calls it.
func newSource(files fs.FS) (*source, error) {
	s := &source{files: map[string][]byte{}, kinds: map[string]bool{}, resources: map[[2]string]*configured{},
		configured: map[string]bool{}}
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name == "lookup" || name == "tests" || name == "examples" || name != "." &&
			strings.HasPrefix(entry.Name(), ".")):
			return fs.SkipDir
		case !entry.Type().IsRegular():
			return nil
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		return s.add(name, content)
	})
	if err != nil {
		return nil, fmt.Errorf("reading the module: %w", err)
	}
	if _, taken := s.files[path.Join(moduleDir, laterFile)]; taken {
		return nil, fmt.Errorf("reading the module: it has a file %s, which the preview needs; rename it", laterFile)
	}
	if err := s.letOnce(); err != nil {
		return nil, fmt.Errorf("reading the module: %w", err)
	}
	s.files[path.Join(moduleDir, laterFile)] = []byte(later)
	s.files[rootFile], err = s.rootModule(1)
	return s, err
}

// add adds a file of the module. The lock file belongs to the root.
func (s *source) add(name string, content []byte) error {
	if name == lockFile {
		s.files[lockFile] = content
		return nil
	}
	if path.Dir(name) == "." && path.Ext(name) == ".tf" {
		changed, err := s.putOff(name, content)
		if err != nil {
			return err
		}
		content = changed
	}
	s.files[path.Join(moduleDir, name)] = content
	return nil
}

// putOff makes each data source depend on a resource that does not exist yet, and records the resources.
func (s *source) putOff(name string, content []byte) ([]byte, error) {
	file, diags := hclwrite.ParseConfig(content, name, hcl.InitialPos)
	if diags.HasErrors() {
		return nil, diags
	}
	changed := false
	for _, block := range file.Body().Blocks() {
		kind, labels := block.Type(), block.Labels()
		if kind == "variable" && len(labels) == 1 && labels[0] == clusterVariable {
			s.cluster = true
		}
		if kind == "provider" && len(labels) == 1 {
			s.configured[labels[0]] = true
		}
		if kind != "resource" && kind != "data" || len(labels) != 2 {
			continue
		}
		s.kinds[labels[0]] = true
		if kind == "resource" {
			set := &configured{}
			set.Read(block.Body())
			s.resources[[2]string{labels[0], labels[1]}] = set
			continue
		}
		changed = true
		breakLine(block.Body())
		block.Body().SetAttributeRaw("depends_on", waiting(block.Body().GetAttribute("depends_on")))
	}
	if !changed {
		return content, nil
	}
	return file.Bytes(), nil
}

// breakLine makes room in a block that may be on one line, which allows only one attribute.
func breakLine(body *hclwrite.Body) {
	attributes := body.Attributes()
	if len(body.Blocks()) > 0 || len(attributes) > 1 {
		return
	}
	given := map[string]hclwrite.Tokens{}
	for name, attribute := range attributes {
		given[name] = attribute.Expr().BuildTokens(nil)
		body.RemoveAttribute(name)
	}
	body.Clear()
	body.AppendNewline()
	for name, tokens := range given {
		body.SetAttributeRaw(name, tokens)
	}
}

// waiting returns a data source's depends_on with the resource that it waits for in front.
func waiting(given *hclwrite.Attribute) hclwrite.Tokens {
	list := hclwrite.Tokens{
		{Type: hclsyntax.TokenOBrack, Bytes: []byte("[")},
		{Type: hclsyntax.TokenIdent, Bytes: []byte(laterName)},
	}
	if given == nil {
		return append(list, &hclwrite.Token{Type: hclsyntax.TokenCBrack, Bytes: []byte("]")})
	}
	list = append(list, &hclwrite.Token{Type: hclsyntax.TokenComma, Bytes: []byte(",")})
	own := given.Expr().BuildTokens(nil)
	for i, token := range own {
		if token.Type == hclsyntax.TokenOBrack {
			return append(list, own[i+1:]...)
		}
	}
	return append(list, own...)
}

// rootModule returns a root module with that many calls of the module. Its variables are data, and unknown values come
// from a resource that does not exist yet, so no value of a Machine is ever written as HCL.
func (s *source) rootModule(calls int) ([]byte, error) {
	variables, modules, outputs := map[string]any{}, map[string]any{}, map[string]any{}
	for n := range calls {
		name := callName(n)
		variables[name] = map[string]any{"type": "any", "sensitive": false}
		variables[name+userDataSuffix] = map[string]any{"type": "string", "sensitive": true}
		call := map[string]any{
			"source":        "./" + moduleDir,
			"machine":       strings.ReplaceAll(machineExpression, "call", "var."+name),
			"provider_spec": "${var." + name + ".provider_spec}",
			laterCall:       "${var." + name + ".later}",
			onceVariable:    "${var." + name + ".once}",
			"user_data": "${var." + name + ".unknown.user_data ? terraform_data.unknown.id : var." + name +
				userDataSuffix + "}",
		}
		if s.cluster {
			call[clusterVariable] = "${var." + name + "." + clusterVariable + "}"
		}
		modules[name] = call
		outputs[name] = map[string]any{"value": "${module." + name + "}"}
	}
	root, err := json.Marshal(map[string]any{
		"variable": variables, "module": modules, "output": outputs,
		"resource": map[string]any{"terraform_data": map[string]any{"unknown": map[string]any{}}},
	})
	if err != nil {
		return nil, fmt.Errorf("writing the root module: %w", err)
	}
	return root, nil
}

// machineExpression is the variable machine, composed of known and unknown attributes.
const machineExpression = `${merge(call.machine, {
	name       = call.unknown.name ? "${call.unknown.name_prefix}${terraform_data.unknown.id}" : call.machine.name
	uid        = call.unknown.uid ? "${terraform_data.unknown.id}" : call.machine.uid
	cluster_id = call.unknown.cluster_id ? "${terraform_data.unknown.id}" : call.machine.cluster_id
})}`

// userDataSuffix ends the name of a call's user data variable, which is sensitive as a whole.
const userDataSuffix = "_user_data"

// callName names a call of the module and its variables.
func callName(n int) string { return "machine" + strconv.Itoa(n) }

// callOf splits an address into its call and the rest.
func callOf(address string) (n int, rest string, ok bool) {
	inside, ok := strings.CutPrefix(address, "module.machine")
	number, rest, found := strings.Cut(inside, ".")
	n, err := strconv.Atoi(number)
	return n, rest, ok && found && err == nil
}

func (s *source) digest() (string, error) {
	raw, err := json.Marshal(s.files)
	if err != nil {
		return "", fmt.Errorf("reading the module: %w", err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}

func (s *source) write(dir string) error {
	var failed []error
	for name, content := range s.files {
		target := filepath.Join(dir, filepath.FromSlash(name))
		err := os.MkdirAll(filepath.Dir(target), 0o700)
		if err == nil {
			err = os.WriteFile(target, content, 0o600)
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

package module_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/test/moduletest"
)

// The bounds of what is read.
const maxFiles, maxFileBytes, maxBytes = 256, 256 << 10, 4 << 20

// file is an entry of an archive: a regular file.
func file(name, content string) tar.Header {
	return tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(content)), PAXRecords: map[string]string{"TEST.content": content}}
}

func folder(name string) tar.Header { return tar.Header{Typeflag: tar.TypeDir, Name: name} }

// packed returns a tar.gz of the entries, whatever they are.
func packed(t *testing.T, entries ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	archive := tar.NewWriter(compressed)
	for _, entry := range entries {
		content := entry.PAXRecords["TEST.content"]
		if entry.Typeflag != tar.TypeXGlobalHeader {
			entry.PAXRecords = nil
		}
		if err := archive.WriteHeader(&entry); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(archive, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func write(t *testing.T, fsys fs.FS) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := module.WriteArchive(&out, fsys); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// texts returns every file of fsys with its content.
func texts(t *testing.T, fsys fs.FS) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(fsys, name)
		found[name] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestAnArchiveIsTheModuleAgain(t *testing.T) {
	unpacked, err := module.ReadArchive(bytes.NewReader(write(t, moduletest.FS(moduletest.Module()))))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(moduletest.Module(), texts(t, unpacked)); diff != "" {
		t.Errorf("files (-packed +unpacked):\n%s", diff)
	}
	again, err := module.ReadFiles(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	folder, err := module.ReadFiles(moduletest.FS(moduletest.Module()))
	if err != nil || again.Digest() != folder.Digest() {
		t.Errorf("got %s, %v; want the digest that the folder has", again.Digest(), err)
	}
}

func TestAnArchiveDependsOnNothingButTheFiles(t *testing.T) {
	plain := write(t, moduletest.FS(moduletest.Module()))
	worn := moduletest.FS(moduletest.Module())
	for _, one := range worn {
		one.ModTime, one.Mode = time.Unix(1700000000, 0), 0o600
	}
	for _, left := range []string{".terraform/providers/lock", ".git/config", "lookup/.main.tf.swp", ".terraform.tfstate"} {
		worn[left] = &fstest.MapFile{Data: []byte("a working copy's")}
	}
	if !bytes.Equal(plain, write(t, worn)) {
		t.Error("times, modes, or files that do not belong to a module change the archive")
	}
	readme := moduletest.Edit(t, moduletest.Module(), moduletest.Change{"README.md", "", "other\n"})
	if len(write(t, moduletest.FS(readme))) == 0 || bytes.Equal(plain, write(t, moduletest.FS(readme))) {
		t.Error("another file gives the same archive")
	}
}

func TestReadArchiveTakesWhatOthersPack(t *testing.T) {
	want := map[string]string{"main.tf": "a", "lookup/import.tf": "b", ".terraform.lock.hcl": "c"}
	cases := map[string][]tar.Header{
		"tar of the folder's content, which begins each path with ./": {
			folder("./"), file("./main.tf", "a"), folder("./lookup/"), file("./lookup/import.tf", "b"), file("./.terraform.lock.hcl", "c"),
		},
		"a release's tarball, with a remark and one folder around it all": {
			{Typeflag: tar.TypeXGlobalHeader, Name: "pax_global_header", PAXRecords: map[string]string{"comment": "0123"}},
			folder("acme-0123/"), file("acme-0123/.gitignore", "x"), file("acme-0123/.terraform.lock.hcl", "c"),
			folder("acme-0123/lookup/"), file("acme-0123/lookup/import.tf", "b"), file("acme-0123/main.tf", "a"),
		},
		"tar of a folder that is named with a dot at its end": {
			folder("acme/./"), file("acme/./main.tf", "a"), file("acme/.//lookup/import.tf", "b"), file("acme/./.terraform.lock.hcl", "c"),
		},
		"files before their folder, and no folders at all": {
			file("lookup/import.tf", "b"), folder("lookup/"), file("main.tf", "a"), file(".terraform.lock.hcl", "c"),
		},
		"what is left out of a module, be it a link or large": {
			file("main.tf", "a"), file("lookup/import.tf", "b"), file(".terraform.lock.hcl", "c"),
			{Typeflag: tar.TypeSymlink, Name: ".terraform/modules", Linkname: "/"}, file("._main.tf", strings.Repeat("x", maxFileBytes+1)),
			file("lookup/.terraform.lock.hcl", "not at the root"), file("lookup/deep/.terraform.lock.hcl", ""),
		},
	}
	for name, entries := range cases {
		t.Run(name, func(t *testing.T) {
			unpacked, err := module.ReadArchive(bytes.NewReader(packed(t, entries...)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, texts(t, unpacked)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOnlyAFolderAroundEverythingIsTakenOff(t *testing.T) {
	unpacked, err := module.ReadArchive(bytes.NewReader(packed(t, file("a/main.tf", "a"), file("b/main.tf", "b"))))
	if err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(texts(t, unpacked))); !slices.Equal(got, []string{"a/main.tf", "b/main.tf"}) {
		t.Errorf("got %q; want both folders to stay", got)
	}
}

func TestReadArchiveRefuses(t *testing.T) {
	many := make([]tar.Header, 0, maxFiles+1)
	for i := range maxFiles + 1 {
		many = append(many, file(fmt.Sprintf("f%03d", i), ""))
	}
	var large []tar.Header
	for i := range maxBytes/maxFileBytes + 1 {
		large = append(large, file(fmt.Sprintf("f%03d", i), strings.Repeat("x", maxFileBytes)))
	}
	var bomb []tar.Header
	for i := range module.MaxArchiveBytes/maxFileBytes + 1 {
		bomb = append(bomb, file(fmt.Sprintf(".hidden%d", i), strings.Repeat("\x00", maxFileBytes)))
	}
	cases := map[string]struct {
		entries []tar.Header
		want    string
	}{
		"an absolute path":                   {[]tar.Header{file("/etc/passwd", "")}, `"/etc/passwd" leads out`},
		"an absolute path that is hidden":    {[]tar.Header{file("/.ssh/id", "")}, `"/.ssh/id" leads out`},
		"a path out of the folder":           {[]tar.Header{file("../main.tf", "")}, `"../main.tf" leads out`},
		"a path out and in":                  {[]tar.Header{file("lookup/../../x/main.tf", "")}, `leads out of the module's folder; pack from within`},
		"a folder outside":                   {[]tar.Header{folder("../")}, `leads out`},
		"a file that is the root":            {[]tar.Header{file("./.", "")}, "it contains no files"},
		"one file in two spellings":          {[]tar.Header{file("lookup/main.tf", ""), file("lookup/.//main.tf", "")}, `"lookup/main.tf" is in the archive twice`},
		"a path of another system":           {[]tar.Header{file(`lookup\main.tf`, "")}, "rename the file"},
		"a path that moves the cursor":       {[]tar.Header{file("a\x1b[2J", "")}, `"a\x1b[2J" contains a backslash, a control character`},
		"a path that is no text":             {[]tar.Header{{Typeflag: tar.TypeReg, Name: "a\xff", Format: tar.FormatGNU}}, "invalid UTF-8"},
		"a path that no file system takes":   {[]tar.Header{file(strings.Repeat("a/", 200)+"x", "")}, "more than 255 bytes"},
		"a symbolic link":                    {[]tar.Header{{Typeflag: tar.TypeSymlink, Name: "main.tf", Linkname: "/etc/passwd"}}, `"main.tf" is a link, a device`},
		"a hard link":                        {[]tar.Header{file("a", "x"), {Typeflag: tar.TypeLink, Name: "main.tf", Linkname: "a"}}, `"main.tf" is a link`},
		"a device":                           {[]tar.Header{{Typeflag: tar.TypeChar, Name: "null", Devmajor: 1, Devminor: 3}}, `"null" is a link, a device`},
		"a pipe":                             {[]tar.Header{{Typeflag: tar.TypeFifo, Name: "pipe"}}, `"pipe" is a link, a device`},
		"a file twice":                       {[]tar.Header{file("main.tf", "a"), file("./main.tf", "b")}, `"main.tf" is in the archive twice; pack each file once`},
		"a file with files in it":            {[]tar.Header{file("main.tf", "a"), file("main.tf/x", "b")}, `"main.tf" is both a file and a folder`},
		"a folder with text in it":           {[]tar.Header{file("main.tf/x", "a"), file("main.tf", "b")}, `"main.tf" is both a file and a folder`},
		"a folder in the place of a file":    {[]tar.Header{file("main.tf", "a"), folder("main.tf/")}, `"main.tf" is both a file and a folder`},
		"too many files":                     {many, "more than 256 files; is this the archive of one module?"},
		"a large file":                       {[]tar.Header{file("a", strings.Repeat("x", maxFileBytes+1))}, `"a" has more than 262144 bytes`},
		"too much together":                  {large, "more than 4194304 bytes of files"},
		"a bomb of what would be left out":   {bomb, "more than 8388608 bytes unpacked"},
		"nothing":                            {nil, "it contains no files; pack the folder of a module"},
		"nothing but what is left out":       {[]tar.Header{file(".git/config", "")}, "it contains no files"},
		"folders without a file":             {[]tar.Header{folder("lookup/")}, "it contains no files"},
		"a lock file in a folder left aside": {[]tar.Header{file(".git/.terraform.lock.hcl", "")}, "it contains no files"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := module.ReadArchive(bytes.NewReader(packed(t, tc.entries...)))
			if err == nil || !strings.HasPrefix(err.Error(), "reading the module's archive: ") || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v; want %q", err, tc.want)
			}
		})
	}
}

// endless is a stream of small gzip members that hold nothing.
type endless struct {
	member []byte
	at     int
}

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.member[e.at]
		e.at = (e.at + 1) % len(e.member)
	}
	return len(p), nil
}

func TestReadArchiveRefusesWhatIsNoWholeArchive(t *testing.T) {
	whole := write(t, moduletest.FS(moduletest.Module()))
	flipped := bytes.Clone(whole)
	flipped[len(flipped)-5] ^= 1 // the checksum is before the length, which are the last eight bytes
	var empty bytes.Buffer
	if err := gzip.NewWriter(&empty).Close(); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		archive io.Reader
		want    string
	}{
		"nothing":                           {strings.NewReader(""), "not a complete tar.gz: EOF; pack the module's folder again, or fetch the archive again"},
		"the response of a web server":      {strings.NewReader("<html>not found</html>"), "not a complete tar.gz: gzip: invalid header"},
		"the first half":                    {bytes.NewReader(whole[:len(whole)/2]), "not a complete tar.gz: unexpected EOF"},
		"one that lacks its checksum":       {bytes.NewReader(whole[:len(whole)-8]), "not a complete tar.gz: unexpected EOF"},
		"one whose checksum differs":        {bytes.NewReader(flipped), "not a complete tar.gz: gzip: invalid checksum"},
		"a stream that never holds a thing": {&endless{member: empty.Bytes()}, "more than 8388608 bytes packed"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := module.ReadArchive(tc.archive); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v; want %q", err, tc.want)
			}
		})
	}
}

func TestWriteArchiveRefusesWhatCouldNotBeReadAgain(t *testing.T) {
	cases := map[string]struct {
		file, want string
	}{
		"a path of another system": {`a\b.tf`, "packing the module: the path"},
		"a path that is too long":  {strings.Repeat("a/", 200) + "main.tf", "more than 255 bytes"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := module.WriteArchive(io.Discard, moduletest.FS(map[string]string{"main.tf": "", tc.file: ""}))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v; want %q", err, tc.want)
			}
		})
	}
}

// FuzzReadArchive feeds tars, packed here so that not every byte has to fit a checksum. Whatever is read is within the limits, and is the
// same again when it is packed.
func FuzzReadArchive(f *testing.F) {
	for _, seed := range [][]byte{packedSeed(f, file("main.tf", "a"), file("x/.terraform.lock.hcl", "b")), packedSeed(f, folder("a/"), file("a/b", "c")), {}} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		var out bytes.Buffer
		compressed := gzip.NewWriter(&out)
		_, _ = compressed.Write(content)
		_ = compressed.Close()
		unpacked, err := module.ReadArchive(&out)
		if err != nil {
			return
		}
		files := texts(t, unpacked)
		total := 0
		for name, text := range files {
			total += len(text)
			if !fs.ValidPath(name) || len(text) > maxFileBytes {
				t.Errorf("got %q of %d bytes", name, len(text))
			}
		}
		if len(files) == 0 || len(files) > maxFiles || total > maxBytes {
			t.Errorf("got %d files of %d bytes", len(files), total)
		}
		again, err := module.ReadArchive(bytes.NewReader(write(t, unpacked)))
		if err != nil {
			t.Fatal(err)
		}
		// A module has files beside its folders; without one the folder around everything would go as well.
		if slices.ContainsFunc(slices.Collect(maps.Keys(files)), func(name string) bool { return !strings.Contains(name, "/") }) {
			if diff := cmp.Diff(files, texts(t, again)); diff != "" {
				t.Errorf("files (-once +packed again):\n%s", diff)
			}
		}
	})
}

func packedSeed(f *testing.F, entries ...tar.Header) []byte {
	f.Helper()
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	for _, entry := range entries {
		content := entry.PAXRecords["TEST.content"]
		entry.PAXRecords = nil
		if err := archive.WriteHeader(&entry); err != nil {
			f.Fatal(err)
		}
		if _, err := io.WriteString(archive, content); err != nil {
			f.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		f.Fatal(err)
	}
	return out.Bytes()
}

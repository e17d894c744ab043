package webhooks

import (
	"strings"
	"testing"
)

func TestSetupNamesTheOptionThatIsMissing(t *testing.T) {
	if err := SetupWithManager(nil, Options{}); err == nil || !strings.Contains(err.Error(), "Catalog must be set") {
		t.Errorf("got %v", err)
	}
}

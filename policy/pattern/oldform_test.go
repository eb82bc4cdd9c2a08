// SPDX-License-Identifier: Apache-2.0

package pattern

import "testing"

func TestOldForm(t *testing.T) {
	for text, want := range map[string]string{
		"0x7f.1": "127.0.0.1", "127.1": "127.0.0.1", "0177.0.0.1": "127.0.0.1", "2130706433": "127.0.0.1", "0x7F000001": "127.0.0.1",
		"10.1.2": "10.1.0.2", "10.1.515": "10.1.2.3", "1.2.3.4": "1.2.3.4", "0": "0.0.0.0", "255.16777215": "255.255.255.255", "4294967295": "255.255.255.255",
		"256.1": "", "1.16777216": "", "1.2.3.256": "", "4294967296": "", "1.2.3.4.5": "", "08.1": "", "0x.1": "", "": "", "1..2": "", "0b1.1": "", "1_0.1": "", "0o7.1": "7.0.0.1", "a.1": "",
	} {
		a, ok := oldForm(text)
		if got := a.String(); ok != (want != "") || ok && got != want {
			t.Errorf("%q: %v %t, want %q", text, a, ok, want)
		}
	}
	for host, want := range map[string]bool{
		"0x7f.1": true, "127.1": true, "a.0x": true, "a.0XfF.": true, "1": true, "*.10": true, "a.b": false, "a1": false, "1.a": false, "0xg": false, "": false, "a.": false, "127.0.0.1.nip.io": false,
	} {
		if got := EndsInNumber(host); got != want {
			t.Errorf("%q: %t", host, got)
		}
	}
}

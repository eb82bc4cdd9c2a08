// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/actplane/actplane/engine/api"
	"github.com/actplane/actplane/internal/testenv"
)

var updatePictures = flag.Bool("update", false, "make the pictures of the documentation anew")

// browser is a page in headless Chromium.
type browser struct {
	*bench
	ctx context.Context
}

// openBrowser opens the page; "make test-all" installs what it needs.
func openBrowser(t *testing.T, b *bench) *browser {
	t.Helper()
	path := testenv.WantProgram(t, "chromium", "chromium")
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	page := &browser{b, ctx}
	page.do(page.scheme("light"), chromedp.EmulateViewport(1000, 800))
	page.open()
	return page
}

func (p *browser) open() {
	p.t.Helper()
	p.do(chromedp.Navigate("http://" + p.address + "/#token=" + p.server.Token()))
	p.await("document.querySelector('#status')?.className === 'live'")
}

func (p *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	stop := time.AfterFunc(time.Minute, func() { chromedp.Cancel(p.ctx) })
	defer stop.Stop()
	if err := chromedp.Do(p.ctx, actions...); err != nil {
		p.t.Fatal(err)
	}
}

// press presses keys, one after the other.
func (p *browser) press(keys string) {
	p.t.Helper()
	p.do(chromedp.KeyEvent(keys))
}

// await waits until an expression is true.
func (p *browser) await(expression string) {
	p.t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		is, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool](expression))
		if err != nil {
			p.t.Fatalf("%s: %v", expression, err)
		}
		if is {
			return
		}
	}
	text, _ := chromedp.Run(p.ctx, chromedp.Evaluate[string]("document.body.innerText"))
	p.t.Fatalf("never %s; the page is\n%s", expression, text)
}

// unguarded waits until a key on the sheet is taken for more than a second click.
func (p *browser) unguarded() {
	p.t.Helper()
	p.await("Date.now() - sheet.since >= 350")
}

func (p *browser) scheme(name string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
		})
		return err
	})
}

// evaluate gives the value of an expression.
func evaluate[T any](p *browser, expression string) T {
	p.t.Helper()
	value, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// noOverflow looks that nothing has to be scrolled sideways.
func (p *browser) noOverflow(where string) {
	p.t.Helper()
	type box struct{ Wide, Screen int }
	if b := evaluate[box](p, "({Wide: document.documentElement.scrollWidth, Screen: innerWidth})"); b.Wide > b.Screen {
		p.t.Errorf("%s: %d pixels wide on %d", where, b.Wide, b.Screen)
	}
}

// TestBrowserByKeyboard answers requests without a mouse, and sees what focus, the title
// and who listens are told.
func TestBrowserByKeyboard(t *testing.T) {
	b := newBench(t, nil)
	p := openBrowser(t, b)
	p.await("document.querySelector('#open .empty').textContent === 'Nothing waits for an answer.'")
	b.engine.Tell()
	p.await("document.title === '(2) ActPlane' && document.querySelectorAll('[data-request]').length === 3")
	p.await("document.querySelector('#announce').textContent.includes('k3m9p, exec /usr/bin/git push origin main')")
	if hash := evaluate[string](p, "location.href"); strings.Contains(hash, "token") {
		t.Errorf("the token stays in the address: %s", hash)
	}
	p.press("j")
	p.await("document.activeElement.dataset.request === 'k3m9p'")
	p.press("a")
	p.await("document.querySelector('#sheet').open && document.querySelector('#sheet-title').textContent === 'Approve k3m9p once?'")
	if evaluate[bool](p, "document.activeElement.matches('#sheet-send')") {
		t.Error("Enter alone approves")
	}
	p.unguarded()
	p.press("\r")
	if evaluate[bool](p, "Boolean(sheet.sent)") || len(b.engine.Answers()) != 0 {
		t.Fatalf("%v", b.engine.Answers())
	}
	p.press("y")
	p.await("!document.querySelector('#sheet').open && document.querySelector('#announce').textContent === 'k3m9p is granted.'")
	// By Tab and Enter alone: the next one is denied.
	p.await("document.activeElement.dataset.request === 'b7q2x'")
	p.press("\t\t\t\r")
	p.await("document.querySelector('#sheet-title').textContent === 'Deny b7q2x for the container’s life?' && document.activeElement.id === 'because'")
	p.unguarded()
	p.press("Not <b>yet</b>\r")
	p.await("document.title === 'ActPlane' && document.querySelector('#open .empty') !== null")
	got := b.engine.Answers()
	if len(got) != 2 || got[0].Id != "k3m9p" || got[0].Count != 1 || got[1].Id != "b7q2x" || !got[1].Denied || got[1].Because != "Not <b>yet</b>" {
		t.Errorf("%v", got)
	}
	// A sheet is about what it shows: when that has changed, nothing is sent.
	b.engine.Ask(&api.Request{Id: "ccccc", Scope: "s", State: "open", Operation: "exec", Object: []byte("/c"), OpenedUnixMs: time.Now().UnixMilli()})
	p.await("document.querySelector('[data-request=ccccc]') !== null")
	p.press("a")
	p.await("document.querySelector('#sheet').open")
	b.engine.Ask(&api.Request{Id: "ccccc", Scope: "s", State: "withdrawn", Operation: "exec", Object: []byte("/c"), OpenedUnixMs: time.Now().UnixMilli()})
	p.await("document.querySelector('#sheet-note').textContent.includes('has changed meanwhile') && document.querySelector('#sheet-send').disabled")
	p.unguarded()
	p.press("y\x1b")
	p.await("!document.querySelector('#sheet').open")
	if got := b.engine.Answers(); len(got) != 2 {
		t.Errorf("%v", got)
	}
	// The timeline, its filter and the graph of a denial.
	p.press("/")
	p.await("document.activeElement.id === 'filter'")
	p.press("\bsecrets-stay") // the test's own / is typed, too; a keyboard's is not
	p.await("document.querySelectorAll('#rows > li').length === 1")
	p.press("\t\r")
	p.await("document.querySelector('#rows svg.graph text.title') !== null && document.activeElement.matches('button.row[aria-expanded=true]')")
	// The daemon goes and comes back.
	b.engine.Stop()
	p.await("document.querySelector('#problem').textContent.includes('the engine has stopped') && document.querySelector('#status').className === ''")
	b.engine.Resume()
	p.await("document.querySelector('#problem').hidden && document.querySelector('#status').className === 'live'")
}

// TestBrowserLocks locks a scope and unlocks it, and takes an answer back that holds.
func TestBrowserLocks(t *testing.T) {
	b := newBench(t, nil)
	b.engine.Tell()
	p := openBrowser(t, b)
	p.await("document.querySelectorAll('#grants [data-request]').length === 1 && document.querySelectorAll('#answered [data-request]').length === 0")
	if left := evaluate[string](p, "document.querySelector('#grants .left').textContent"); !strings.HasPrefix(left, "Is granted: ") {
		t.Errorf("what is left is %q", left)
	}
	p.press("jjj")
	p.await("document.activeElement.dataset.request === 't4d8c'")
	p.press("r")
	p.await("document.querySelector('#sheet').open")
	p.unguarded()
	p.press("y")
	p.await("document.querySelector('#announce').textContent === 't4d8c is revoked.' && document.querySelector('#title-grants').hidden")
	p.press("4j")
	p.await("document.activeElement.dataset.scope?.startsWith('4f1c09aa')")
	p.press("U") // it is not locked
	p.press("L")
	p.await("document.querySelector('#sheet-title').textContent === 'Lock web-agent?' && document.activeElement.id === 'because'")
	p.unguarded()
	p.press("\bIt <i>leaks</i>\r") // the test's own L is typed, too; a keyboard's is not
	p.await("document.querySelector('#announce').textContent === 'web-agent is locked: everything that it does is refused.' && !document.querySelector('#sheet').open")
	p.await("document.activeElement.dataset.scope?.startsWith('4f1c09aa') && document.activeElement.textContent.includes('Unlock')")
	p.press("U")
	p.await("document.querySelector('#sheet-title').textContent === 'Unlock web-agent?'")
	p.unguarded()
	p.press("\r")
	if evaluate[bool](p, "Boolean(sheet.sent)") {
		t.Error("Enter unlocks")
	}
	p.press("y")
	p.await("document.querySelector('#announce').textContent === 'web-agent is unlocked; 7 operations were refused.'")
	locked, unlocked := b.engine.Locked(), b.engine.Unlocked()
	if len(locked) != 1 || locked[0].Because != "It <i>leaks</i>" || locked[0].By.GetVia() != "web" || locked[0].All || len(unlocked) != 1 || unlocked[0].Scope != locked[0].Scope {
		t.Errorf("%v, %v", locked, unlocked)
	}
}

// TestBrowserHostile shows 200 texts that want to be a part of the page: each is text.
func TestBrowserHostile(t *testing.T) {
	b := newBench(t, nil)
	b.hostile()
	p := openBrowser(t, b)
	p.await("document.querySelectorAll('[data-request]').length === 200 && document.querySelectorAll('#rows > li').length === 200")
	evaluate[bool](p, "([...document.querySelectorAll('button.row')].slice(0, 40).forEach((e) => e.click()), true)")
	p.await("document.querySelectorAll('svg.graph').length === 40")
	p.press("1a")
	p.await("document.querySelector('#sheet').open")
	if title := evaluate[string](p, "document.title"); title != "(200) ActPlane" {
		t.Errorf("the title is %q", title)
	}
	foreign := evaluate[[]string](p, `[...document.querySelectorAll("*")].filter((e) =>
		["IFRAME", "OBJECT", "EMBED", "FORM", "A", "IMG", "SCRIPT", "STYLE", "LINK"].includes(e.tagName.toUpperCase()) && !e.closest("header, head, footer") && !e.matches("dialog > form")
		|| [...e.attributes].some((a) => a.name.startsWith("on") || a.name === "style" || a.name === "srcdoc")).map((e) => e.outerHTML)`)
	if len(foreign) > 0 {
		t.Errorf("elements that are not the page's: %q", foreign)
	}
	for _, c := range evaluate[[]int](p, `[...new Set(document.body.textContent)].map((c) => c.codePointAt(0)).filter((c) => c < 32 && c !== 10 || c >= 127 && c < 160 || c >= 0x2028 && c <= 0x202e || c >= 0x2066 && c <= 0x2069)`) {
		t.Errorf("the page has the character %#x", c)
	}
	for _, width := range []int64{360, 1000} {
		p.do(chromedp.EmulateViewport(width, 720))
		p.noOverflow(fmt.Sprintf("hostile texts at %d", width))
	}
}

// TestBrowserLook has each page in each look fit its screen, with enough contrast; with
// -update it makes the pictures of the documentation.
func TestBrowserLook(t *testing.T) {
	b := newBench(t, nil)
	b.engine.TellAt(time.Now())
	p := openBrowser(t, b)
	p.await("document.querySelectorAll('[data-request]').length === 3 && document.querySelectorAll('#rows > li').length === 6")
	for _, width := range []int64{360, 1000} {
		p.do(chromedp.EmulateViewport(width, 760))
		for _, scheme := range []string{"light", "dark"} {
			p.do(p.scheme(scheme))
			for page := range 4 {
				p.press(fmt.Sprint(page + 1))
				where := fmt.Sprintf("page %d at %d, %s", page+1, width, scheme)
				p.noOverflow(where)
				if low := evaluate[[]string](p, contrastScript); len(low) > 0 {
					t.Errorf("%s: too little contrast: %q", where, low)
				}
			}
		}
	}
	if !*updatePictures {
		return
	}
	p.press("4")
	p.do(chromedp.EmulateViewport(960, 720), p.scheme("light"))
	p.press("1")
	p.picture("web-requests")
	p.do(p.scheme("dark"))
	p.press("2jjjj\r")
	p.await("document.querySelector('svg.graph') !== null")
	p.do(chromedp.EmulateViewport(900, 1240))
	evaluate[bool](p, "(scrollTo(0, 250), document.activeElement.blur(), true)")
	p.picture("web-timeline-dark")
	p.do(p.scheme("light"), chromedp.EmulateViewport(360, 640, chromedp.EmulateMobile))
	p.press("1")
	evaluate[bool](p, "(scrollTo(0, 0), true)")
	p.picture("web-phone")
}

// contrastScript lists texts whose colour is less than 4.5 to 1 from what is behind them.
const contrastScript = `(() => {
	const parse = (c) => c.match(/[\d.]+/g).map(Number);
	const light = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
	const behind = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0.5) return c; } return [255, 255, 255]; };
	const low = [];
	for (const e of document.querySelectorAll("body *")) {
		if (!e.checkVisibility() || ![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) || e.closest(".unseen, .zero, svg, kbd")) continue;
		const a = light(parse(getComputedStyle(e).color)), b = light(behind(e));
		if ((Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5) low.push(e.textContent);
	}
	return low;
})()`

func (p *browser) picture(name string) {
	p.t.Helper()
	p.await("document.getAnimations().length === 0") // colours change slowly
	png, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join("..", "..", "docs", "images", name+".png"), png, 0o644)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

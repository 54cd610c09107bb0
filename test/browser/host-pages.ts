/** A page of a kind that sites have, and what happens on it after a visitor has written. */
export interface HostPage {
  doctype?: string
  type?: string
  headers?: Record<string, string>
  /** Markup before the widget's script. */
  head?: string
  body?: string
  /** Script elements of the widget, in which `SRC` is the address of `widget.js`. */
  tags?: string
  /** Script that runs before all others. */
  before?: string
  /** Script that runs when the visitor has written, for example a visit of a page by a router. */
  act?: string
  /** True if the page makes storage impossible, so that the next page begins anew. */
  hasNoStorage?: boolean
  /** True if the page removes the widget each time. */
  removes?: boolean
  /** Expression with the window in which the widget is. */
  inside?: string
}

/** The usual script element of the widget. */
export const tag = '<script src="SRC" data-site-key="pk_friendly" defer></script>'
const bodyTag = '<script src="SRC" data-site-key="pk_friendly"></script>'
/** Makes a body as a router does: from text, with copies of its scripts, so that they run. */
const nextBody = `
  window.nextBody = () => {
    const body = new DOMParser().parseFromString('<body><h1>Next</h1>' + window.bodyScripts + '</body>', 'text/html').body
    for (const script of body.querySelectorAll('script')) {
      const copy = document.createElement('script')
      for (const { name, value } of script.attributes) copy.setAttribute(name, value)
      script.replaceWith(copy)
    }
    return document.adoptNode(body)
  }
  window.bodyScripts = ''`

/** The pages by name. */
export const hostPages: Record<string, HostPage> = {
  'a plain page': {},
  'a router that replaces the body, with the script in it (Turbo)': {
    tags: '',
    body: bodyTag,
    before: nextBody,
    act: `bodyScripts = document.querySelector('script[data-site-key]').outerHTML; document.body.replaceWith(nextBody())`,
  },
  'a router that replaces the body twice at once (a preview, then the page)': {
    before: nextBody,
    act: `document.body.replaceWith(nextBody()); setTimeout(() => document.body.replaceWith(nextBody()))`,
  },
  'a router that sets document.body': { before: nextBody, act: 'document.body = nextBody()' },
  'a router that shows a stored copy of the body': {
    act: `document.body.replaceWith(document.body.cloneNode(true))`,
  },
  'a boosted link (htmx)': { act: `document.body.innerHTML = '<h1>Next</h1>'` },
  'a router that swaps attributes and body (Astro)': {
    before: nextBody,
    act: `for (const { name } of [...document.documentElement.attributes]) document.documentElement.removeAttribute(name)
      document.body.replaceWith(nextBody())`,
  },
  'a morphing router that removes unknown children': {
    act: 'for (const child of [...document.body.children]) if (!child.matches("h1")) child.remove()',
  },
  'a morphing router that turns an element into one of the same name (Idiomorph)': {
    act: `const next = document.createElement('body')
      next.innerHTML = '<h1>Next</h1><div id="news">News</div>'
      for (const child of [...document.body.children]) {
        const same = [...next.children].find(({ tagName }) => tagName === child.tagName)
        if (!same) child.remove()
        else {
          for (const { name } of [...child.attributes]) child.removeAttribute(name)
          child.replaceChildren(...same.childNodes)
          child.id = same.id
          same.remove()
        }
      }
      document.body.append(...next.children)
      if (!document.querySelector('#news').getClientRects().length) throw new Error('the page lost its news')`,
  },
  'a script that removes the attributes of the element, then the element': {
    act: `const found = document.querySelector('[data-service-widget]')
      for (const { name } of [...found.attributes]) found.removeAttribute(name)
      found.remove()`,
  },
  'a failed hydration that renders the whole document again (React)': {
    act: `document.documentElement.replaceChildren(document.createElement('head'), document.createElement('body'))
      document.body.innerHTML = '<h1>Next</h1>'`,
  },
  'a document element that is replaced': {
    act: `const html = document.createElement('html')
      html.innerHTML = '<head><title>Next</title></head><body><h1>Next</h1></body>'
      document.documentElement.replaceWith(html)`,
  },
  'innerHTML of the document element': {
    act: `document.documentElement.innerHTML = '<head></head><body><h1>Next</h1></body>'`,
  },
  'a document without a body for a moment': {
    before: nextBody,
    act: `document.body.remove(); setTimeout(() => document.documentElement.append(nextBody()), 30)`,
  },
  'document.write after the page was loaded': {
    act: `const source = document.documentElement.outerHTML
      document.open(); document.write('<!doctype html>' + source); document.close()`,
  },
  'document.write while the page is loading': {
    head: '<script>document.write("<p>An advertisement</p>")</script>',
  },
  'a script that removes the element': { act: `document.querySelector('[data-service-widget]').remove()` },
  'a range that takes the content of the body': {
    act: 'const range = document.createRange(); range.selectNodeContents(document.body); range.extractContents()',
  },
  'a script that moves the element and removes its new parent': {
    act: `const box = document.createElement('div')
      document.body.append(box)
      box.append(document.querySelector('[data-service-widget]'))
      box.remove()`,
  },
  'a script that moves the element into a hidden parent': {
    body: '<div id="box" style="display: none"></div>',
    act: `document.querySelector('#box').append(document.querySelector('[data-service-widget]'))`,
  },
  'a script that adopts the element into another document': {
    act: `document.implementation.createHTMLDocument('').body.append(document.querySelector('[data-service-widget]'))`,
  },
  'a script that moves the element into a frame': {
    body: '<iframe></iframe>',
    act: `document.querySelector('iframe').contentDocument.body.append(document.querySelector('[data-service-widget]'))`,
  },
  'a script that removes the element whenever it appears': {
    act: `window.removals = 0
      const remove = () => {
        const found = document.querySelector('[data-service-widget]')
        if (!found) return
        window.removals += 1
        found.remove()
      }
      new MutationObserver(remove).observe(document, { childList: true, subtree: true })
      remove()`,
    removes: true,
  },
  'two tags': { tags: tag + tag },
  'a tag and a copy that a plugin adds later': {
    act: `const found = document.querySelector('script[data-site-key]')
      const copy = document.createElement('script')
      for (const { name, value } of found.attributes) copy.setAttribute(name, value)
      document.head.append(copy)`,
  },
  'a module script': { tags: '<script type="module" src="SRC" data-site-key="pk_friendly"></script>' },
  'an async script': { tags: '<script src="SRC" data-site-key="pk_friendly" async></script>' },
  'a script in the head that blocks': { tags: bodyTag },
  'a script element that removes itself': {
    head: `<script>addEventListener('service-widget:start', ({ target }) => target.remove())</script>`,
  },
  'shortcuts on document': {
    before: `for (const name of ['keydown', 'keypress', 'keyup'])
      document.addEventListener(name, (event) => {
        if (event.target.matches?.('input, textarea')) return
        if (/^[a-z]$/.test(event.key)) event.preventDefault()
      })`,
  },
  'a service worker that caches every GET': {
    before: `navigator.serviceWorker?.register('/worker.js').then(() => navigator.serviceWorker.ready)`,
  },
  'monitoring that adds headers to each request': {
    before: `const added = {
        traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', tracestate: 'dd=s:1', baggage: 'a=b',
        'sentry-trace': '0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1', newrelic: 'e30',
        'x-datadog-origin': 'rum', 'x-datadog-parent-id': '1', 'x-datadog-sampling-priority': '1',
        'x-datadog-sampled': '1', 'x-datadog-trace-id': '1' }
      const own = fetch
      window.fetch = (input, init = {}) => own(input, { ...init, headers: { ...init.headers, ...added } })
      const { send } = XMLHttpRequest.prototype
      XMLHttpRequest.prototype.send = function (body) {
        for (const name in added) this.setRequestHeader(name, added[name])
        return send.call(this, body)
      }`,
  },
  'blocked storage': {
    before: `for (const name of ['sessionStorage', 'localStorage'])
      Object.defineProperty(window, name, { get() { throw new DOMException('Denied', 'SecurityError') } })`,
    hasNoStorage: true,
  },
  'full storage': {
    before: `Storage.prototype.setItem = () => { throw new DOMException('Full', 'QuotaExceededError') }`,
    hasNoStorage: true,
  },
  'a library that adds toJSON to built-in objects (Prototype 1.6)': {
    before: `Array.prototype.toJSON = function () { return '[' + [...this].join(', ') + ']' }
      String.prototype.toJSON = function () { return '"' + this + '"' }
      Number.prototype.toJSON = function () { return String(this) }
      Date.prototype.toJSON = function () { return '"' + this.getTime() + '"' }`,
  },
  'a library that adds enumerable members to built-in objects (MooTools)': {
    before: `Object.prototype.$family = function () {}
      Array.prototype.each = Array.prototype.forEach
      Array.from = (items) => { const list = []; for (let at = 0; at < items.length; at += 1) list.push(items[at]); return list }
      Array.prototype.entries = function () { return this.slice() }
      Element.prototype.remove = function () { this.parentNode.removeChild(this); return this }
      Function.prototype.bind = function (self, given) { const run = this; return (...more) => run.apply(self, given ?? more) }`,
  },
  'polyfills that wrap the shadow root and the observers': {
    before: `const attach = Element.prototype.attachShadow
      Element.prototype.attachShadow = function (init) { return attach.call(this, { ...init, mode: 'open' }) }
      const Own = MutationObserver
      window.MutationObserver = class { constructor(run) { return new Own((...given) => run(...given)) } }`,
  },
  'frozen built-in objects': {
    before:
      'for (const each of [Object, Array, Promise, Map, Set]) { Object.freeze(each); Object.freeze(each.prototype) }',
  },
  'an AMD loader': { before: `window.define = () => { throw new Error('define') }; window.define.amd = {}` },
  'a translation of the text nodes': {
    act: `const walker = document.createTreeWalker(document.querySelector('[data-service-widget]').shadowRoot, NodeFilter.SHOW_TEXT)
      const texts = []
      while (walker.nextNode()) texts.push(walker.currentNode)
      for (const text of texts) {
        const font = document.createElement('font')
        text.replaceWith(font)
        font.append(text)
      }`,
  },
  'a strict policy': {
    headers: {
      'content-security-policy':
        "default-src 'none'; script-src ORIGIN 'unsafe-inline'; connect-src ORIGIN; require-trusted-types-for 'script'; trusted-types 'none'",
    },
  },
  'a base address': { head: '<base href="https://elsewhere.example/deep/">' },
  'quirks mode': { doctype: '' },
  'an XHTML page': { doctype: '<?xml version="1.0"?>', type: 'application/xhtml+xml' },
  'a page from right to left': { before: `document.documentElement.dir = 'rtl'` },
  'an image whose name is currentScript': { head: '', body: '<img name="currentScript" alt="" />' },
  'a body that is hidden at first': {
    head: '<style>.wait { opacity: 0; display: none }</style>',
    body: `<script>document.body.className = 'wait'; setTimeout(() => document.body.className = '', 200)</script>`,
  },
  'a page in a frame': {
    tags: '',
    body: '<iframe src="/framed" width="800" height="700"></iframe>',
    inside: `document.querySelector('iframe').contentWindow`,
  },
  'requests that fail as in the background of a phone': {
    before: `const own = fetch
      let count = 0
      window.fetch = (...given) => {
        const [, init] = given
        count += 1
        return count % 3 === 0 && init?.method ? Promise.reject(new TypeError('Load failed')) : own(...given)
      }`,
  },
  'a browser that never fires pagehide and visibilitychange': {
    before: `for (const name of ['pagehide', 'visibilitychange', 'freeze'])
      addEventListener(name, (event) => event.stopImmediatePropagation(), true)`,
  },
}

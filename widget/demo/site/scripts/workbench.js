import { element } from './elements.js'
import { troubles } from './network-trouble.js'
import { embedPanel } from './workbench-embed.js'
import { eventsPanel } from './workbench-events.js'
import { networkPanel } from './workbench-network.js'
import { tryPanel } from './workbench-try.js'

const storageKey = 'shop.workbench'

/**
 * The drawer for integrators: what to try, trouble on demand, what happens, and the code. Opened by its button, by links of the
 * page, and by Alt+Shift+E. Stays open over page changes.
 *
 * @param {object} deps
 * @param {import('./shop-facts.js').ShopFacts} deps.facts
 * @param {ReturnType<typeof import('./event-log.js').createEventLog>} deps.log
 * @param {ReturnType<typeof import('./network-trouble.js').createNetworkTrouble>} deps.trouble
 * @param {Promise<import('../../../src/index.ts').ServiceWidget>} deps.ready
 */
export function createWorkbench({ facts, log, trouble, ready }) {
  const events = eventsPanel(log)
  const panels = [
    { id: 'try', name: 'Try it', content: tryPanel(facts, log) },
    { id: 'network', name: 'Network', content: networkPanel(trouble) },
    { id: 'events', name: 'Events', content: events.content },
    { id: 'embed', name: 'Code', content: embedPanel(facts) },
  ]
  const tabs = panels.map(({ id, name }) =>
    element('button', { type: 'button', role: 'tab', id: `tab-${id}`, 'aria-controls': `panel-${id}` }, name),
  )
  const sheets = panels.map(({ id, content }) =>
    element(
      'div',
      { role: 'tabpanel', id: `panel-${id}`, 'aria-labelledby': `tab-${id}`, tabindex: '0', class: 'sheet' },
      content,
    ),
  )
  const close = element('button', { type: 'button', class: 'close', 'aria-label': 'Close the workbench' }, '×')
  const tabList = element('div', { role: 'tablist', 'aria-label': 'Workbench' }, ...tabs)
  const drawer = element(
    'aside',
    { class: 'workbench', id: 'workbench', 'aria-label': 'Workbench', hidden: true },
    element('div', { class: 'head' }, element('h2', {}, 'Workbench'), close),
    tabList,
    ...sheets,
  )
  const state = element('span', { class: 'state' })
  const opener = element(
    'button',
    { type: 'button', class: 'workbench-opener', 'aria-controls': 'workbench', 'aria-keyshortcuts': 'Alt+Shift+E' },
    element('span', { class: 'lamp', 'aria-hidden': 'true' }),
    element('span', {}, 'Workbench'),
    state,
  )
  document.body.append(drawer, opener)

  let chosen = 0
  for (const [index, tab] of tabs.entries()) tab.addEventListener('click', () => choose(index))
  tabList.addEventListener('keydown', (event) => {
    const steps = { ArrowRight: 1, ArrowLeft: -1, Home: -chosen, End: tabs.length - 1 - chosen }
    const step = steps[/** @type {keyof typeof steps} */ (event.key)]
    if (step === undefined) return
    event.preventDefault()
    choose((chosen + step + tabs.length) % tabs.length)
    tabs[chosen]?.focus()
  })
  opener.addEventListener('click', () => (drawer.hidden ? open() : hide()))
  close.addEventListener('click', hide)
  drawer.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') hide()
  })
  document.addEventListener('keydown', (event) => {
    // By the key's place: with Alt held down, what the key writes differs from keyboard to keyboard.
    if (!event.altKey || !event.shiftKey || event.code !== 'KeyE') return
    event.preventDefault()
    if (!drawer.hidden && chosen === 2) hide()
    else open('events')
  })
  for (const link of document.querySelectorAll('[data-open-workbench]')) {
    link.toggleAttribute('hidden', false)
    link.addEventListener('click', () => open(link.getAttribute('data-open-workbench') ?? undefined))
  }
  trouble.subscribe(showTrouble)
  showTrouble()
  void ready.then((widget) => {
    // The launcher's corner is the installation's choice; the drawer takes the other one.
    widget.on('config.loaded', ({ config }) => {
      document.documentElement.classList.toggle('launcher-left', config.appearance.position === 'left')
    })
  })
  const kept = sessionStorage.getItem(storageKey)
  choose(
    Math.max(
      0,
      panels.findIndex(({ id }) => id === kept),
    ),
  )
  if (kept) show()
  else opener.setAttribute('aria-expanded', 'false')

  /** @param {string} [id] */
  function open(id) {
    if (id) choose(panels.findIndex((panel) => panel.id === id))
    show()
    tabs[chosen]?.focus()
  }

  function show() {
    drawer.hidden = false
    document.documentElement.classList.add('with-workbench')
    opener.setAttribute('aria-expanded', 'true')
    sessionStorage.setItem(storageKey, panels[chosen]?.id ?? '')
    tellEvents()
  }

  function hide() {
    drawer.hidden = true
    document.documentElement.classList.remove('with-workbench')
    opener.setAttribute('aria-expanded', 'false')
    sessionStorage.removeItem(storageKey)
    tellEvents()
    opener.focus()
  }

  /** @param {number} index */
  function choose(index) {
    chosen = index
    tabs.forEach((tab, at) => {
      tab.setAttribute('aria-selected', String(at === index))
      tab.tabIndex = at === index ? 0 : -1
    })
    sheets.forEach((sheet, at) => {
      sheet.hidden = at !== index
    })
    if (!drawer.hidden) sessionStorage.setItem(storageKey, panels[index]?.id ?? '')
    tellEvents()
  }

  function tellEvents() {
    events.setShown(!drawer.hidden && panels[chosen]?.id === 'events')
  }

  function showTrouble() {
    const mode = trouble.mode()
    opener.classList.toggle('in-trouble', mode !== 'none')
    tabs[1]?.classList.toggle('in-trouble', mode !== 'none')
    state.textContent = mode === 'none' ? '' : troubles[mode].name
  }
}

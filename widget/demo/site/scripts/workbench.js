import { lineOf } from './event-log.js'

const storageKey = 'shop.workbench'

/**
 * Runs the workbench. It opens with its button, links of the page and Alt+Shift+E, and stays open
 * over page loads.
 *
 * @import { LogEntry } from './event-log.js'
 * @param {object} deps
 * @param {ReturnType<typeof import('./event-log.js').createEventLog>} deps.log
 * @param {ReturnType<typeof import('./network-trouble.js').createNetworkTrouble>} deps.trouble
 */
export function startWorkbench({ log, trouble }) {
  const drawer = find('.workbench')
  const opener = find('.workbench-opener')
  const tabs = [.../** @type {NodeListOf<HTMLElement>} */ (drawer.querySelectorAll('[role="tab"]'))]
  const panels = [.../** @type {NodeListOf<HTMLElement>} */ (drawer.querySelectorAll('[role="tabpanel"]'))]
  const stored = sessionStorage.getItem(storageKey)
  let chosen = 0

  for (const [index, tab] of tabs.entries()) tab.addEventListener('click', () => choose(index))
  find('[role="tablist"]').addEventListener('keydown', (event) => {
    const steps = { ArrowRight: 1, ArrowLeft: -1, Home: -chosen, End: tabs.length - 1 - chosen }
    const step = steps[/** @type {keyof typeof steps} */ (event.key)]
    if (step === undefined) return
    event.preventDefault()
    choose((chosen + step + tabs.length) % tabs.length)
    tabs[chosen]?.focus()
  })
  opener.addEventListener('click', () => open(chosen))
  find('[data-open-workbench]').addEventListener('click', () => open(0))
  find('.workbench .close').addEventListener('click', close)
  drawer.addEventListener('keydown', ({ key }) => key === 'Escape' && close())
  document.addEventListener('keydown', (event) => {
    // Checks the position of the key, because Alt changes the character on some keyboards.
    if (!event.altKey || !event.shiftKey || event.code !== 'KeyE') return
    event.preventDefault()
    const events = tabs.length - 1
    if (!drawer.hidden && chosen === events) close()
    else open(events)
  })
  showIdentity(log)
  showTrouble(trouble)
  showEvents(log)
  choose(Number(stored))
  if (stored) show(true)

  /** @param {number} index */
  function open(index) {
    choose(index)
    show(true)
    tabs[index]?.focus()
  }

  function close() {
    show(false)
    opener.focus()
  }

  /** @param {boolean} isOpen */
  function show(isOpen) {
    drawer.hidden = !isOpen
    document.documentElement.classList.toggle('with-workbench', isOpen)
    opener.setAttribute('aria-expanded', String(isOpen))
    if (isOpen) sessionStorage.setItem(storageKey, String(chosen))
    else sessionStorage.removeItem(storageKey)
  }

  /** @param {number} index */
  function choose(index) {
    chosen = index
    for (const [at, tab] of tabs.entries()) {
      tab.setAttribute('aria-selected', String(at === index))
      tab.tabIndex = at === index ? 0 : -1
      panels[at]?.toggleAttribute('hidden', at !== index)
    }
    if (!drawer.hidden) show(true)
  }
}

/** @param {ReturnType<typeof import('./event-log.js').createEventLog>} log */
function showIdentity(log) {
  log.subscribe((entry) => {
    if (entry?.name !== 'session.ready') return
    const { state, displayName = 'a customer' } = JSON.parse(entry.text).session.identity
    find('.identity').textContent =
      state === 'verified' ? `You write as ${displayName}, verified.` : 'You write as an anonymous visitor.'
  })
}

/** @param {ReturnType<typeof import('./network-trouble.js').createNetworkTrouble>} trouble */
function showTrouble(trouble) {
  /** @type {NodeListOf<HTMLInputElement>} */
  const choices = document.querySelectorAll('[name="trouble"]')
  for (const input of choices) {
    input.checked = input.value === trouble.mode()
    input.addEventListener('change', () => {
      trouble.choose(input.value)
      show()
    })
  }
  show()

  function show() {
    const isOn = trouble.mode() !== 'none'
    const name = document.querySelector('[name="trouble"]:checked + span strong')?.textContent
    for (const element of [find('.workbench-opener'), find('#tab-network')])
      element.classList.toggle('in-trouble', isOn)
    find('.workbench-opener .trouble').textContent = isOn ? `${name}` : ''
  }
}

/** @param {ReturnType<typeof import('./event-log.js').createEventLog>} log */
function showEvents(log) {
  const filter = /** @type {HTMLInputElement} */ (find('.tools input'))
  const list = find('.entries')
  const matching = () =>
    log.entries().filter((entry) => lineOf(entry).toLowerCase().includes(filter.value.toLowerCase()))
  const render = () => {
    list.replaceChildren(...(list.checkVisibility() ? matching().map(createRow).reverse() : []))
    find('#no-events').hidden = list.childElementCount > 0
  }
  filter.addEventListener('input', render)
  find('.tools .clear').addEventListener('click', log.clear)
  const copy = find('.tools .copy')
  copy.addEventListener('click', async () => {
    const isCopied = await navigator.clipboard.writeText(matching().map(lineOf).join('\n')).then(
      () => true,
      () => false,
    )
    copy.textContent = isCopied ? 'Copied' : 'Not allowed'
  })
  log.subscribe((entry) => {
    if (!entry || filter.value || !list.checkVisibility()) return render()
    list.prepend(createRow(entry))
    while (list.childElementCount > log.entries().length) list.lastElementChild?.remove()
    find('#no-events').hidden = true
  })
  // The list has no size while the panel is hidden, so render again when it gets one.
  new ResizeObserver(render).observe(find('#panel-events'))
}

/** @param {LogEntry} entry */
function createRow({ at, kind, name, text }) {
  const row = document.createElement('li')
  const details = document.createElement('details')
  const summary = document.createElement('summary')
  const gist = text.replaceAll(/["{}]/g, '').replaceAll(/\s+/g, ' ').slice(0, 120)
  summary.append(create('time', at.toISOString().slice(11, 23)), create('strong', name), create('span', gist))
  details.addEventListener('toggle', () => details.append(create('pre', text)), { once: true })
  details.append(summary)
  row.append(details)
  row.className = kind
  return row
}

/** @param {string} tag @param {string} text */
function create(tag, text) {
  const element = document.createElement(tag)
  element.textContent = text
  return element
}

/** @param {string} selector */
const find = (selector) => /** @type {HTMLElement} */ (document.querySelector(selector))

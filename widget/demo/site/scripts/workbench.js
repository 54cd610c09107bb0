import { lineOf } from './event-log.js'

const storageKey = 'shop.workbench'

/**
 * Runs the workbench. It opens with its button and Alt+Shift+E, and stays open over page loads.
 *
 * @import { LogEntry } from './event-log.js'
 * @param {object} deps
 * @param {ReturnType<typeof import('./event-log.js').createEventLog>} deps.log
 * @param {ReturnType<typeof import('./network-trouble.js').createNetworkTrouble>} deps.trouble
 */
export function startWorkbench({ log, trouble }) {
  const panel = find('#workbench')
  const opener = find('.opener')
  const filter = /** @type {HTMLInputElement} */ (find('.tools input'))
  const list = find('.entries')
  const copy = find('.copy')

  opener.addEventListener('click', open)
  find('.close').addEventListener('click', close)
  panel.addEventListener('keydown', ({ key }) => key === 'Escape' && close())
  /** @param {KeyboardEvent} event */
  function onKey(event) {
    // Checks the position of the key, because Alt changes the character on some keyboards.
    if (!event.altKey || !event.shiftKey || event.code !== 'KeyE') return
    event.preventDefault()
    if (panel.hidden) open()
    else close()
  }
  // The chat keeps its events from listeners that do not capture.
  document.addEventListener('keydown', onKey, { capture: true })
  for (const input of /** @type {NodeListOf<HTMLInputElement>} */ (document.querySelectorAll('[name="trouble"]'))) {
    input.checked = input.value === trouble.mode()
    input.addEventListener('change', () => {
      trouble.choose(input.value)
      showTrouble()
    })
  }
  filter.addEventListener('input', render)
  find('.clear').addEventListener('click', log.clear)
  copy.addEventListener('click', async () => {
    copy.textContent = await navigator.clipboard.writeText(matching().map(lineOf).join('\n')).then(
      () => 'Copied',
      () => 'Not allowed',
    )
  })
  log.subscribe((entry) => {
    if (entry?.name === 'session.ready') showIdentity(entry)
    if (!entry || filter.value || panel.hidden) return render()
    list.prepend(createRow(entry))
    while (list.childElementCount > log.entries().length) list.lastElementChild?.remove()
    find('#no-events').hidden = true
  })
  showTrouble()
  show(sessionStorage.getItem(storageKey) !== null)

  function open() {
    show(true)
    panel.focus()
  }

  function close() {
    show(false)
    opener.focus()
  }

  /** @param {boolean} isOpen */
  function show(isOpen) {
    panel.hidden = !isOpen
    opener.setAttribute('aria-expanded', String(isOpen))
    if (isOpen) sessionStorage.setItem(storageKey, 'open')
    else sessionStorage.removeItem(storageKey)
    render()
  }

  function showTrouble() {
    const name = document.querySelector('[name="trouble"]:checked + span strong')?.textContent
    find('.opener span').textContent = trouble.mode() === 'none' ? '' : `: ${name}`
  }

  function matching() {
    return log.entries().filter((entry) => lineOf(entry).toLowerCase().includes(filter.value.toLowerCase()))
  }

  function render() {
    list.replaceChildren(...(panel.hidden ? [] : matching().map(createRow).reverse()))
    find('#no-events').hidden = list.childElementCount > 0
  }
}

/** @param {LogEntry} entry */
function showIdentity({ text }) {
  const { state, displayName = 'a customer' } = JSON.parse(text).session.identity
  find('.identity').textContent =
    state === 'verified' ? `You write as ${displayName}, verified.` : 'You write as an anonymous visitor.'
}

/** @param {LogEntry} entry */
function createRow({ at, kind, name, text }) {
  const row = create('li')
  const details = create('details')
  const summary = create('summary')
  const gist = text.replaceAll(/["{}]/g, '').replaceAll(/\s+/g, ' ').slice(0, 120)
  summary.append(create('time', at.toISOString().slice(11, 23)), create('strong', name), create('span', gist))
  details.addEventListener('toggle', () => details.append(create('pre', text)), { once: true })
  details.append(summary)
  row.append(details)
  row.className = kind
  return row
}

/** @param {string} tag */
function create(tag, text = '') {
  return Object.assign(document.createElement(tag), { textContent: text })
}

/** @param {string} selector */
const find = (selector) => /** @type {HTMLElement} */ (document.querySelector(selector))

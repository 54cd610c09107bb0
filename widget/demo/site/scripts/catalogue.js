/**
 * The one place of the shop that changes without a new document: the kinds of lamps. Without this script they are ordinary links.
 *
 * @param {() => void} onChanged the page's address and title are new
 */
export function followKinds(onChanged) {
  const kinds = document.querySelector('[data-kinds]')
  if (!kinds) return
  const links = [...kinds.querySelectorAll('a')]
  for (const link of links) {
    link.addEventListener('click', (event) => {
      if (event.metaKey || event.ctrlKey || event.shiftKey) return
      event.preventDefault()
      if (link.pathname === location.pathname) return
      history.pushState(null, '', link.pathname)
      show()
    })
  }
  window.addEventListener('popstate', show)

  function show() {
    const link = links.find(({ pathname }) => pathname === location.pathname) ?? links[0]
    if (!link) return
    for (const one of links) one.toggleAttribute('aria-current', false)
    link.setAttribute('aria-current', 'page')
    const kind = link.pathname.split('/')[2]
    let shown = 0
    for (const card of document.querySelectorAll('[data-lamps] > li')) {
      const isShown = kind === undefined || card.getAttribute('data-kind') === kind
      card.toggleAttribute('hidden', !isShown)
      if (isShown) shown += 1
    }
    const name = link.textContent ?? ''
    const heading = document.querySelector('[data-lamps-title]')
    const count = document.querySelector('[data-lamps-count]')
    if (heading) heading.textContent = name
    if (count) count.textContent = `${name}: ${shown}`
    document.title = `${name} · Nordlicht`
    onChanged()
  }
}

/**
 * Changes the kind of lamps without a page load. Without JavaScript, the links load other pages.
 *
 * @param {() => void} onChanged called when the page has a new URL and title
 */
export function followLampKinds(onChanged) {
  const links = [.../** @type {NodeListOf<HTMLAnchorElement>} */ (document.querySelectorAll('.kinds a'))]
  if (links.length === 0) return
  for (const link of links) {
    link.addEventListener('click', (event) => {
      if (event.metaKey || event.ctrlKey || event.shiftKey) return
      event.preventDefault()
      if (link.pathname !== location.pathname) history.pushState(null, '', link.pathname)
      show()
    })
  }
  window.addEventListener('popstate', show)

  function show() {
    const kind = location.pathname.split('/')[2]
    const cards = [...document.querySelectorAll('.card')]
    const shown = cards.filter((card) => !kind || card.getAttribute('data-kind') === kind)
    for (const card of cards) card.toggleAttribute('hidden', !shown.includes(card))
    for (const link of links) {
      link.removeAttribute('aria-current')
      if (link.pathname !== location.pathname) continue
      link.setAttribute('aria-current', 'page')
      setText('h1', link.textContent)
      setText('#lamp-count', `${link.textContent}: ${shown.length}`)
      document.title = `${link.textContent} · Nordlicht`
    }
    onChanged()
  }
}

/** @param {string} selector @param {string} text */
function setText(selector, text) {
  const element = document.querySelector(selector)
  if (element) element.textContent = text
}

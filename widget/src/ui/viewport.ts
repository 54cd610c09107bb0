/**
 * Keeps `--viewport-height` and `--viewport-top` of an element at the part of the page that is really to be seen: on phones the
 * keyboard covers the rest, and the composer must stay above it. The answer stops it.
 */
export function followVisualViewport(target: HTMLElement): () => void {
  const viewport = window.visualViewport
  if (!viewport) return () => {}
  const controller = new AbortController()
  const { signal } = controller
  const update = () => {
    target.style.setProperty('--viewport-height', `${viewport.height}px`)
    target.style.setProperty('--viewport-top', `${viewport.offsetTop}px`)
  }
  viewport.addEventListener('resize', update, { signal })
  viewport.addEventListener('scroll', update, { signal })
  update()
  return () => controller.abort()
}

import type { Page } from 'playwright-core'

/** Tags of the rules of axe that pages must satisfy. */
export const accessibilityTags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']

/** Sizes of pages, in CSS pixels. */
export const pageSizes = {
  desktop: { width: 1440, height: 900 },
  laptop: { width: 1280, height: 800 },
  phone: { width: 390, height: 844 },
}

/** The pages that a laptop shows at 200 % and 400 % zoom. */
export const zoomedSizes = { twice: { width: 640, height: 400 }, fourTimes: { width: 320, height: 256 } }

/**
 * Copies all of an element with Ctrl+C and returns the clipboard. Each text that nobody sees is replaced by
 * “HIDDEN” before.
 *
 * @param element expression of the page
 */
export async function copyAll(page: Page, element: string): Promise<string> {
  await page.context().grantPermissions(['clipboard-read'])
  await page.evaluate(`(() => {
    const texts = document.createTreeWalker(${element}, NodeFilter.SHOW_TEXT)
    const isClipped = (one) => one && (getComputedStyle(one).clipPath !== 'none' || isClipped(one.parentElement))
    while (texts.nextNode()) {
      const { parentElement } = texts.currentNode
      const isSeen = parentElement.checkVisibility({ opacityProperty: true, visibilityProperty: true })
      if (!isSeen || isClipped(parentElement)) texts.currentNode.data = 'HIDDEN'
    }
    getSelection().selectAllChildren(${element})
  })()`)
  await page.keyboard.press('Control+c')
  return page.evaluate('navigator.clipboard.readText()')
}

/** What the Tab key did on a page. Elements are told by their tag and name. */
export interface TabWalk {
  /** The elements that it reached, in order. */
  stops: string[]
  /** Usable elements that it did not reach. */
  missed: string[]
  /** Elements that it reached although they are hidden or show no focus indicator. */
  unseen: string[]
}

/** Looks for the usable elements, and focuses an element before the first one. */
const beginWalk = (root: string) => `(() => {
  const root = ${root}
  const within = root.querySelector('dialog[open]') ?? root
  const usable = 'a[href], summary, button:not([disabled]), input:not([disabled]), select, textarea, [tabindex="0"]'
  // Tab reaches only the checked radio button of a group; the arrow keys reach the others. WebKitGTK passes over
  // colours; a text field beside them takes the same value.
  const wanted = [...within.querySelectorAll(usable)].filter(
    (each) => each.checkVisibility({ visibilityProperty: true }) && !each.matches('[type=radio]:not(:checked), [type=color]'),
  )
  const start = document.createElement('button')
  within === root ? document.body.prepend(start) : within.prepend(start)
  start.focus()
  window.walk = { root, start, wanted, stops: new Map() }
})()`

/** Notes the element that has the focus. Returns how many are missed. */
const look = `(() => {
  const { root, start, wanted, stops } = window.walk
  const each = root.activeElement
  const shows = (part) => part && getComputedStyle(part).outlineStyle !== 'none'
  if (each && each !== start && each !== document.body && !stops.has(each)) {
    const isSeen = each.checkVisibility() && each.getBoundingClientRect().width > 0
    stops.set(each, isSeen && [each, each.nextElementSibling, each.closest('.entry')].some(shows))
  }
  return wanted.filter((each) => each.checkVisibility() && !stops.has(each)).length
})()`

const findings = `(() => {
  const { start, wanted, stops } = window.walk
  start.remove()
  const textOf = (each) => each.getAttribute('aria-label') ?? each.labels?.[0]?.textContent ?? each.textContent ?? ''
  const name = (each) => each.tagName.toLowerCase() + ' ' + textOf(each).trim()
  return {
    stops: [...stops.keys()].map(name),
    missed: wanted.filter((each) => each.checkVisibility() && !stops.has(each)).map((each) => each.outerHTML.slice(0, 120)),
    unseen: [...stops].filter(([, isSeen]) => !isSeen).map(([each]) => name(each)),
  }
})()`

/**
 * Presses Tab from the beginning of a page, or of its open dialog, until all usable elements had the focus.
 *
 * @param root expression of the page: its document or a shadow root
 */
export async function tabThrough(
  page: { evaluate<T>(expression: string): Promise<T>; press(key: 'Tab'): Promise<unknown> },
  root = 'document',
): Promise<TabWalk> {
  await page.evaluate(beginWalk(root))
  const wanted = await page.evaluate<number>(look)
  // Regions that scroll are stops too, so there are more of them than usable elements.
  for (let presses = 0, missed = wanted; missed > 0 && presses < 2 * wanted + 20; presses += 1) {
    await page.press('Tab')
    missed = await page.evaluate<number>(look)
  }
  return page.evaluate<TabWalk>(findings)
}

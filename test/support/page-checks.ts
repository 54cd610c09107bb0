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

import { chatIcon } from '../../../../browser/chat/chat-icon.ts'
import { launcherColors } from '../../../../browser/colors.ts'
import type { WidgetConfig } from '../../vocabulary/types.ts'
import { element, icon } from '../elements/elements.ts'
import launcherCss from './launcher.css?inline'

export interface LauncherOptions {
  /** Parent element of the widget's element. The default is `body`, also while the element is not in the page. */
  container?: HTMLElement
  /** Side of the page on which the launcher is shown. Overrides the installation's setting. */
  position?: 'left' | 'right'
  /** If false, the page must open the chat itself. The default is true. */
  launcher?: boolean
  /** If true, the panel fills `container` and is open while the chat is mounted. There is no launcher. */
  embedded?: boolean
}

interface LauncherHooks {
  /** Called when the element is in the page again after the page has removed it. */
  onReturn?: () => void
  /** Called if the launcher has no listener: at first, and after `document.open`, which removes all listeners. */
  listen?: () => void
}

export type LauncherHost = ReturnType<typeof createLauncherHost>

/**
 * Creates the widget's element with the launcher. Every page loads this code, so it must stay
 * small. No content security policy blocks its styles, because it uses constructable style sheets
 * and style properties.
 */
export function createLauncherHost(options: LauncherOptions) {
  // A name of its own, because routers that morph pages turn elements of one name into each other.
  const host = document.createElement('service-widget')
  const root = host.attachShadow({ mode: 'open' })
  const sheet = new CSSStyleSheet()
  sheet.replaceSync(launcherCss)
  const sheets = [sheet]
  const button = element(
    'button',
    {
      class: 'launcher',
      hidden: options.launcher === false || options.embedded,
      'aria-haspopup': 'dialog',
    },
    icon(chatIcon, 'chat'),
  )
  const failed = element('div', { class: 'failed', role: 'alert', dir: 'auto' })
  const frame = element('div', { class: 'frame' }, button, failed)
  let pauseMs = 0
  let timer: ReturnType<typeof setTimeout> | 0
  const observer = new MutationObserver(() => place())
  root.append(frame)

  const made = {
    host,
    frame,
    button,
    /** Shows the text of a failure beside the launcher. */
    failed,

    /** All style sheets of the shadow root, which loses them if a script moves it to another document. */
    sheets,

    /**
     * Adds the widget's element to the page, and adds it again whenever the page removes it. The
     * element is in the top layer, so that the page's own transforms, filters and z-indexes neither
     * move nor cover it.
     */
    attach: () => place(true),

    detach() {
      observer.disconnect()
      clearTimeout(timer)
      host.remove()
    },

    /** Applies the installation's appearance, or the default appearance if it is undefined. */
    setAppearance(appearance: WidgetConfig['appearance'] | undefined) {
      const { accent, onAccent } = launcherColors(appearance?.accentColor)
      frame.style.setProperty('--accent', accent)
      frame.style.setProperty('--on-accent', onAccent)
      frame.dataset.position = options.position ?? appearance?.position ?? 'right'
    },
  }
  const launcherHost: typeof made & LauncherHooks = made
  return launcherHost

  /**
   * Puts the element into the page if it is not there, and follows all elements that contain it. A
   * script of the page may remove the element each time, so each further return within a second
   * takes longer.
   */
  function place(isDue?: boolean) {
    const parent = options.container?.isConnected ? options.container : document.body
    observer.disconnect()
    let node: Node | null = parent ?? document.documentElement ?? document
    for (; node; node = node.parentNode ?? (node as ShadowRoot).host) observer.observe(node, { childList: true })
    if (!parent || host.parentNode === parent) return
    if (pauseMs && !isDue) {
      timer ||= setTimeout(() => {
        timer = 0
        place(true)
      }, pauseMs)
      return
    }
    pauseMs = 2 * pauseMs + 8
    setTimeout(() => {
      pauseMs = 0
    }, 1_000)
    // The first place that no chat of another site key has. A stored copy of the page has no shadow root.
    let slot = 0
    while (document.querySelector(`[data-service-widget="${slot}"]`)?.shadowRoot) slot += 1
    host.dataset.serviceWidget = `${slot}`
    frame.style.setProperty('--slot', `${slot}`)
    parent.append(host)
    root.adoptedStyleSheets = sheets
    // An element in the top layer would leave its place in the page.
    if (options.embedded) host.dataset.embedded = ''
    else {
      host.popover = 'manual'
      host.showPopover?.()
    }
    if (!button.onclick) launcherHost.listen?.()
    launcherHost.onReturn?.()
  }
}

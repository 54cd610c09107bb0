import { launcherColors } from '../../../../browser/colors.ts'
import type { WidgetConfig } from '../../client/types.ts'
import { element, icon } from '../elements/elements.ts'
import { chatIcon } from '../elements/icons.ts'
import launcherCss from './launcher.css?inline'

export interface LauncherOptions {
  /** Side of the page on which the launcher is shown. Overrides the installation's setting. */
  position?: 'left' | 'right'
  /**
   * True if the launcher is shown, which is the default. If false, the page must open the chat
   * itself.
   */
  launcher?: boolean
}

export type LauncherHost = ReturnType<typeof createLauncherHost>

/**
 * Creates the widget's element with the launcher. Every page loads this code, so it must stay
 * small. No content security policy blocks its styles, because it uses constructable style sheets
 * and style properties.
 */
export function createLauncherHost({ position, launcher }: LauncherOptions) {
  const host = element('div', { 'data-service-widget': '', popover: 'manual' })
  const root = host.attachShadow({ mode: 'open' })
  const sheet = new CSSStyleSheet()
  sheet.replaceSync(launcherCss)
  root.adoptedStyleSheets = [sheet]
  const button = element(
    'button',
    {
      class: 'launcher',
      type: 'button',
      hidden: launcher === false,
      'aria-haspopup': 'dialog',
      'aria-expanded': 'false',
    },
    icon(chatIcon, 'chat'),
  )
  const failed = element('div', { class: 'failed', role: 'alert', dir: 'auto' })
  const frame = element('div', { class: 'frame' }, button, failed)
  let lastLogged = ''
  root.append(frame)

  return {
    host,
    root,
    frame,
    button,

    /**
     * Adds the widget's element to the page. The element is in the top layer, so that the page's
     * own transforms, filters and z-indexes neither move nor cover it.
     */
    attach(container = document.body) {
      container.append(host)
      if (host.isConnected) host.showPopover?.()
    },

    /** Logs why the service refuses the chat, unless the same reason was logged last. */
    logRefusal(code: string, siteKey: string) {
      if (lastLogged !== code)
        console.error(`Chat: ${code}. Allow ${location.origin} for ${siteKey} (console: Websites)`)
      lastLogged = code
    },

    /** Applies the installation's appearance, or the default appearance if it is undefined. */
    setAppearance(appearance: WidgetConfig['appearance'] | undefined) {
      const { accent, onAccent } = launcherColors(appearance?.accentColor)
      frame.style.setProperty('--accent', accent)
      frame.style.setProperty('--on-accent', onAccent)
      frame.dataset.position = position ?? appearance?.position ?? 'right'
    },

    /** Shows the text of a failure beside the launcher. An empty text removes the failure. */
    setFailure(text: string) {
      failed.textContent = text
    },
  }
}

import type { WidgetConfig } from '../types.ts'
import { element, icon } from './elements.ts'
import { chatIcon } from './icons.ts'
import launcherCss from './launcher.css?inline'
import { launcherColors } from './launcher-colors.ts'

export interface LauncherOptions {
  /** The side of the launcher. Overrides the installation. */
  position?: 'left' | 'right'
  /** Whether there is a launcher to be seen; true if left out. A page without one opens the chat itself. */
  launcher?: boolean
}

export type LauncherHost = ReturnType<typeof createLauncherHost>

/**
 * The widget's element with its launcher: all there is before the first open, and so as small as can be. The sheet is a
 * constructable one and the colours go through the style object, which no Content-Security-Policy restricts.
 */
export function createLauncherHost({ position, launcher }: LauncherOptions) {
  const host = element('div', { 'data-service-widget': '' })
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
  const failed = element('div', { class: 'failed', role: 'alert', dir: 'auto', hidden: true })
  const frame = element('div', { class: 'frame' }, button, failed)
  let told = ''
  root.append(frame)

  return {
    host,
    root,
    frame,
    button,

    /** Logs once why the service refuses the chat. */
    tellRefusal(code: string, siteKey: string) {
      if (told !== code)
        console.error(`Chat: ${code}. Allow ${location.origin} for ${siteKey} (console: Installations)`)
      told = code
    },

    /** The installation's look, or the package's own. */
    setAppearance(appearance: WidgetConfig['appearance'] | undefined) {
      const { accent, onAccent } = launcherColors(appearance?.accentColor)
      frame.style.setProperty('--accent', accent)
      frame.style.setProperty('--on-accent', onAccent)
      frame.dataset.position = position ?? appearance?.position ?? 'right'
    },

    /** Shows a failure beside the button. An empty text removes it. */
    setFailure(text: string) {
      failed.hidden = !text
      failed.textContent = text
    },
  }
}

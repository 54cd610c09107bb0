import { fileURLToPath } from 'node:url'
import type { InlineConfig } from 'vite'
import { translateTexts } from './translation.ts'

/** Build of the console for the path `/console/`. The output has no inline scripts or styles. */
const config: InlineConfig = {
  root: fileURLToPath(new URL('.', import.meta.url)),
  configFile: false,
  base: '/console/',
  logLevel: 'warn',
  plugins: [translateTexts()],
  // Tests build it too. Their NODE_ENV would choose the transformation for development.
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact', development: false } },
  build: {
    target: 'es2022',
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    // The content security policy blocks `data:` URLs, so assets must not be inlined.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: { checks: { pluginTimings: false } },
  },
}

export default config

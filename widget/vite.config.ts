import { fileURLToPath } from 'node:url'
import type { InlineConfig } from 'vite'
import { widgetLocales } from '../contract/widget-locales.ts'

const root = fileURLToPath(new URL('.', import.meta.url))

interface Output {
  /** Paths of the entry files, by name of the output file. */
  input: Record<string, string>
  format?: 'es' | 'iife'
  /** Output files that several entry files share. `test` matches the paths of their modules. */
  shared?: { name: string; test: RegExp }[]
  define?: Record<string, string>
  sourcemap?: boolean
  external?: string[]
  banner?: (chunk: { name: string }) => string
}

function outputOf({ input, define, format = 'es', shared, sourcemap = false, external, banner }: Output): InlineConfig {
  return {
    root,
    configFile: false,
    logLevel: 'warn',
    publicDir: false,
    base: './',
    define,
    build: {
      target: 'es2022',
      cssTarget: ['chrome123', 'safari17.5', 'firefox120'],
      emptyOutDir: false,
      minify: true,
      modulePreload: false,
      reportCompressedSize: false,
      sourcemap,
      // Without `lib`, Vite wraps `import()` in a helper that searches the page for style sheets.
      ...(format === 'es' && { lib: { entry: input, formats: [format] } }),
      rolldownOptions: {
        input,
        external,
        checks: { pluginTimings: false },
        preserveEntrySignatures: 'strict',
        // Minification keeps annotation comments inside functions unless `annotation` is false.
        output: {
          banner,
          entryFileNames: '[name].js',
          chunkFileNames: 'chunks/[name].js',
          // Without shared files, each entry is one file that imports nothing.
          codeSplitting: shared ? { groups: shared } : false,
          format,
          minify: true,
          comments: { annotation: false },
        },
      },
    },
  }
}

/** Build of the npm package. Its entry files export only the documented names and share chunks. */
export const packageBuild = outputOf({
  input: {
    index: 'src/index.ts',
    client: 'src/client-entry.ts',
    loader: 'src/loader-entry.ts',
    react: 'src/react/index.ts',
    vue: 'src/vue/index.ts',
  },
  sourcemap: true,
  external: ['react', 'vue'],
  // Frameworks with server components must run the hooks in the browser.
  banner: ({ name }) => (name === 'react' ? `'use client';` : ''),
  shared: [{ name: 'core', test: /src\/(client|features|identity|messages|session|transport)\// }],
})

/** Parts of the chat that are loaded later (see `src/ui/parts.ts`), with the paths of their sources. */
export const parts: Record<string, string> = {
  requests: 'src/ui/requests/request-card.ts',
  forms: 'src/ui/forms/late-forms.ts',
  ...Object.fromEntries(widgetLocales.slice(1).map((tag) => [tag, `src/ui/languages/${tag}.json`])),
}

/** Returns the build of one file of the chat, which imports nothing. */
export const partBuild = (name: string) => outputOf({ input: { [name]: parts[name]! } })

/** Returns the build of the chat, with the hash of each part by name. */
export const chatBuild = (partIntegrity: Record<string, string>) =>
  outputOf({
    input: { chat: 'src/ui/chat-entry.ts' },
    define: { PART_INTEGRITY: JSON.stringify(partIntegrity) },
  })

/**
 * Returns the build of `widget.js`. `widget.js` is a classic script, because modules cannot access
 * their own script element.
 *
 * @param chatModule URL of the chat, relative to `widget.js`
 * @param chatIntegrity hash of the chat
 */
export const loaderBuild = (chatModule: string, chatIntegrity: string) =>
  outputOf({
    input: { widget: 'src/ui/launcher/loader.ts' },
    format: 'iife',
    define: { CHAT_MODULE: JSON.stringify(chatModule), CHAT_INTEGRITY: JSON.stringify(chatIntegrity) },
  })

import { fileURLToPath } from 'node:url'
import { minify } from 'terser'
import type { InlineConfig, Plugin } from 'vite'

const root = fileURLToPath(new URL('.', import.meta.url))

interface Output {
  /** Paths of the entry files, by name of the output file. */
  input: Record<string, string>
  entryFileNames: string
  chunkFileNames: string
  format?: 'es' | 'iife'
  chunks?: ReturnType<typeof oneFile>
  /**
   * Controls the exports of the built entry files. `strict`: an entry file has only the exports of
   * its source file. `allow-extension`: the build may add exports that other chunks import, which
   * avoids an extra file.
   */
  signatures?: 'strict' | 'allow-extension'
  define?: Record<string, string>
  plugins?: Plugin[]
  sourcemap?: boolean
  external?: string[]
  banner?: (chunk: { name: string }) => string
}

/** Returns the option that bundles all modules whose path matches `test` into one file. */
const oneFile = (name: string, test: RegExp) => ({ codeSplitting: { groups: [{ name, test }] } })

/**
 * Plugin that minifies the output again with Terser, which makes it 1 % smaller. Vite's own Terser
 * setting does not minify ES module libraries.
 */
const minifiedTwice: Plugin = {
  name: 'minified-twice',
  async renderChunk(code, _chunk, { format }) {
    // `unsafe_arrows` turns some functions into arrow functions, which cannot be called with `new`.
    // This package does not call these functions with `new`.
    const { code: smaller, map } = await minify(code, {
      sourceMap: true,
      module: format === 'es',
      ecma: 2022,
      compress: { passes: 2, unsafe_arrows: true, hoist_funs: true, directives: false },
      mangle: false,
    })
    return { code: smaller!, map: map as string }
  },
}

/** Name of the function that imports a chunk of the chat after its content was checked. */
const checkedImport = 'importChunk'

/**
 * Plugin that routes each `import('./x.ts')` of the chat through `importChunk`. The call keeps the
 * import in a function, so that the bundler still creates the chunk. `linkChunks` replaces this
 * function by the chunk's name.
 */
const checkedImports: Plugin = {
  name: 'checked-imports',
  enforce: 'post',
  transform(code, id) {
    if (!id.startsWith(`${root}src/`) || id.includes('import-chunk')) return undefined
    const routed = code.replace(/\bimport\((["']\.[^"']+["'])\)/g, `${checkedImport}(() => import($1))`)
    if (routed === code) return undefined
    return { code: `import { ${checkedImport} } from '${root}src/ui/import-chunk.ts'\n${routed}`, map: null }
  },
}

function outputOf({
  input,
  define,
  format = 'es',
  chunks,
  signatures = 'strict',
  plugins = [],
  sourcemap = false,
  external,
  ...names
}: Output): InlineConfig {
  return {
    root,
    configFile: false,
    logLevel: 'warn',
    publicDir: false,
    base: './',
    define,
    plugins: [...plugins, minifiedTwice],
    build: {
      target: 'es2022',
      cssTarget: ['chrome123', 'safari17.5', 'firefox120'],
      emptyOutDir: false,
      minify: true,
      modulePreload: false,
      reportCompressedSize: false,
      sourcemap,
      // Build ES modules as a library. Otherwise, Vite wraps `import()` in a helper that searches
      // the page for style sheets.
      ...(format === 'es' && { lib: { entry: input, formats: [format] } }),
      rolldownOptions: {
        input,
        external,
        checks: { pluginTimings: false },
        preserveEntrySignatures: signatures,
        // Minification keeps annotation comments inside functions unless `annotation` is false.
        output: { ...names, ...chunks, format, minify: true, comments: { annotation: false } },
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
  },
  sourcemap: true,
  external: ['react'],
  // Frameworks with server components must run the hooks in the browser.
  banner: ({ name }) => (name === 'react' ? `'use client';` : ''),
  entryFileNames: '[name].js',
  chunkFileNames: 'chunks/[name].js',
  chunks: oneFile('core', /src\/(client|client-entry|pause|backoff|errors)\.ts$/),
})

/** Build of the chat that `widget.js` loads. Chunks that are loaded later import only the chat. */
export const chatBuild = outputOf({
  input: { chat: 'src/ui/chat-entry.ts' },
  entryFileNames: '[name].js',
  chunkFileNames: '[name].js',
  signatures: 'allow-extension',
  plugins: [checkedImports],
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
    input: { widget: 'src/ui/loader.ts' },
    entryFileNames: '[name].js',
    chunkFileNames: '[name].js',
    format: 'iife',
    define: { CHAT_MODULE: JSON.stringify(chatModule), CHAT_INTEGRITY: JSON.stringify(chatIntegrity) },
  })

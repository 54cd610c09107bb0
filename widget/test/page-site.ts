import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import { build, type Rolldown } from 'vite'
import { listen } from '../../test/support/listen.ts'

/** Starts a site with one empty page. The page's script is a bundled module of this folder. */
export async function startPageSite(moduleName: string) {
  const script = await bundled(fileURLToPath(new URL(moduleName, import.meta.url)))
  const server = createServer((request, response) => {
    const isScript = request.url === '/script.js'
    response.setHeader('Content-Type', isScript ? 'text/javascript' : 'text/html')
    response.end(
      isScript ? script : '<!doctype html><title>A page</title><script type="module" src="/script.js"></script>',
    )
  })
  return listen(server)
}

async function bundled(entry: string): Promise<string> {
  const built = await build({
    configFile: false,
    logLevel: 'warn',
    build: {
      write: false,
      target: 'es2022',
      lib: { entry, formats: ['es'], fileName: 'script' },
      rolldownOptions: { output: { codeSplitting: false } },
    },
  })
  const [output] = built as Rolldown.RolldownOutput[]
  return output!.output[0].code
}

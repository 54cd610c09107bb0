// Runs the signature checks of docs/receiving-leads.md that are written in other languages. Skips a
// language that is not installed (Debian packages: python3, golang-go, php-cli).

import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { inheritedEnvironment } from '../support/processes.ts'

const root = join(import.meta.dirname, '../..')
const document = readFileSync(join(root, 'docs/receiving-leads.md'), 'utf8')
const folder = mkdtempSync(join(tmpdir(), 'receiving-leads-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

// Each program reads secret, body and signature from its environment. It prints `ok` if the
// signature is valid.
const languages = [
  {
    name: 'python',
    file: 'check.py',
    command: ['python3'],
    program: (snippet: string) => `import hashlib, hmac, os
class request: headers = {"X-Service-Webhook-Signature": os.environ["SIGNATURE"]}
secret, body = os.environ["SECRET"], os.environ["BODY"].encode()
${snippet}
print("true" if ok else "false")
`,
  },
  {
    name: 'go',
    file: 'check.go',
    command: ['go', 'run'],
    program: (snippet: string) => `package main
import ("crypto/hmac"; "crypto/sha256"; "encoding/hex"; "fmt"; "net/http"; "os")
func main() {
	r := &http.Request{Header: http.Header{}}
	r.Header.Set("X-Service-Webhook-Signature", os.Getenv("SIGNATURE"))
	secret, body := os.Getenv("SECRET"), []byte(os.Getenv("BODY"))
${snippet}
	fmt.Println(ok)
}
`,
  },
  {
    name: 'php',
    file: 'check.php',
    command: ['php', '-d', 'variables_order=EGPCS'],
    program: (snippet: string) => `<?php
$_SERVER['HTTP_X_SERVICE_WEBHOOK_SIGNATURE'] = getenv('SIGNATURE');
$secret = getenv('SECRET');
$body = getenv('BODY');
${snippet}
echo $ok ? 'true' : 'false', PHP_EOL;
`,
  },
]

// Test vector from GitHub's documentation of X-Hub-Signature-256.
const published = {
  SECRET: "It's a Secret to Everybody",
  BODY: 'Hello, World!',
  SIGNATURE: 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17',
}

describe.each(languages)('the manual signature check in $name', ({ name, file, command, program }) => {
  const [executable = '', ...options] = command
  const missing = spawnSync(executable, [name === 'go' ? 'version' : '--version']).error !== undefined

  it.skipIf(missing)('the manual signature check accepts the published test vector and rejects changed vectors', () => {
    const [, byHand] = document.split('### By hand')
    const snippet = new RegExp(`\`\`\`${name}\n(.*?)\`\`\``, 's').exec(byHand ?? '')?.[1]
    expect(snippet).toBeDefined()
    const path = join(folder, file)
    writeFileSync(path, program(snippet ?? ''))
    const answer = (change: Partial<typeof published>) => {
      const environment = { ...inheritedEnvironment(), GOCACHE: join(folder, 'go'), ...published, ...change }
      const { stdout, stderr } = spawnSync(executable, [...options, path], { env: environment, encoding: 'utf8' })
      return stdout.trim() || stderr
    }
    expect(answer({})).toBe('true')
    expect(answer({ BODY: 'Hello, World?' })).toBe('false')
    expect(answer({ SECRET: 'another' })).toBe('false')
    expect(answer({ SIGNATURE: published.SIGNATURE.slice('sha256='.length) })).toBe('false')
    expect(answer({ SIGNATURE: '' })).toBe('false')
  })
})

// Runs the signature checks of docs/receiving-leads.md and the assertions of docs/integrating.md that are written in
// other languages. Skips a language that is not installed (Debian packages: python3, golang-go, php-cli).

import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { jwtVerify } from 'jose'
import { Webhook } from 'standardwebhooks'
import { afterAll, describe, expect, it } from 'vitest'
import { inheritedEnvironment } from '../support/processes.ts'

const root = join(import.meta.dirname, '../..')
const document = readFileSync(join(root, 'docs/receiving-leads.md'), 'utf8')
const folder = mkdtempSync(join(tmpdir(), 'receiving-leads-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

// Each program reads secret, body and signature from its environment. It prints `ok` if the signature is valid.
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
    const [, byHand] = document.split('### By hand, with `sha256=`')
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

const [, withWebhookSignature = ''] = document.split('### By hand, with `webhook-signature`')
const integrating = readFileSync(join(root, 'docs/integrating.md'), 'utf8')

/** Each program calls the document's function with the arguments of its environment, and prints the result. */
const callers = [
  {
    name: 'python',
    command: ['python3', '-c'],
    check: `import json, os
headers = json.loads(os.environ["HEADERS"])
print("true" if is_ours(os.environ["SECRET"], os.environ["BODY"].encode(), headers) else "false")`,
    sign: `print(assertion("pk_1", "kid_1", "the secret", "customer 1", "Zoë"))`,
  },
  {
    name: 'php',
    command: ['php', '-r'],
    check: `$headers = json_decode(getenv('HEADERS'), true);
echo isOurs(getenv('SECRET'), getenv('BODY'), $headers['webhook-id'], $headers['webhook-timestamp'],
  $headers['webhook-signature']) ? 'true' : 'false';`,
    sign: `echo assertion('pk_1', 'kid_1', 'the secret', 'customer 1', 'Zoë');`,
  },
]

describe.each(callers)('the functions in $name', ({ name, command: [executable = '', option = ''], check, sign }) => {
  const missing = spawnSync(executable, ['--version']).error !== undefined
  const snippetOf = (text: string) => new RegExp(`\`\`\`${name}\n(.*?)\`\`\``, 's').exec(text)?.[1] ?? ''
  function run(code: string, variables: Record<string, string> = {}): string {
    const env = { ...inheritedEnvironment(), PYTHONUTF8: '1', ...variables }
    const { stdout, stderr } = spawnSync(executable, [option, code], { env, encoding: 'utf8' })
    return stdout.trim() || stderr
  }

  it.skipIf(missing)('accept a webhook-signature, and reject what was changed or is old', () => {
    const secrets = [0, 1].map(() => `whsec_${randomBytes(32).toString('base64')}`)
    const [secret = '', other = ''] = secrets
    const body = '{"data":{"name":"Zoë"}}'
    const headersOf = (at: Date, ...signing: string[]) => ({
      'webhook-id': 'dlv_1',
      'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
      'webhook-signature': signing.map((each) => new Webhook(each).sign('dlv_1', at, body)).join(' '),
    })
    const now = headersOf(new Date(), secret)
    const answer = (headers: object, text = body) =>
      run(`${snippetOf(withWebhookSignature)}\n${check}`, {
        SECRET: secret,
        BODY: text,
        HEADERS: JSON.stringify(headers),
      })
    expect(answer(now)).toBe('true')
    expect(answer(headersOf(new Date(), other, secret))).toBe('true')
    expect(answer(headersOf(new Date(), other))).toBe('false')
    expect(answer(now, `${body} `)).toBe('false')
    expect(answer({ ...now, 'webhook-id': 'dlv_2' })).toBe('false')
    expect(answer({ ...now, 'webhook-signature': now['webhook-signature'].replace('v1,', '') })).toBe('false')
    for (const minutes of [-6, 6])
      expect(answer(headersOf(new Date(Date.now() + minutes * 60_000), secret))).toBe('false')
  })

  it.skipIf(missing)('sign an assertion that is valid', async () => {
    const token = run(`${snippetOf(integrating)}\n${sign}`)
    const { payload, protectedHeader } = await jwtVerify(token, new TextEncoder().encode('the secret'))
    expect(protectedHeader).toEqual({ alg: 'HS256', typ: 'service-visitor-identity+jwt', kid: 'kid_1' })
    expect(payload).toMatchObject({
      aud: 'pk_1',
      sub: 'customer 1',
      name: 'Zoë',
      jti: expect.stringMatching(/^.{8,128}$/),
    })
    expect(payload.exp! - payload.iat!).toBe(120)
  })
})

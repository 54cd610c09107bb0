// biome-ignore lint/suspicious/noExplicitAny: tests check the raw response
type Body = any

/**
 * Calls a gateway as the console does in a browser: with its headers, and with the cookie of the last sign-in.
 * Paths begin with `/console/session/` or `/rpc/`.
 */
export function consoleCalls(gatewayUrl: string) {
  let cookie = ''
  return async (path: string, body: object = {}): Promise<{ status: number; body: Body }> => {
    const answer = await fetch(gatewayUrl + path, {
      method: 'POST',
      headers: {
        origin: new URL(gatewayUrl).origin,
        'sec-fetch-site': 'same-origin',
        'x-service-console': '1',
        'content-type': 'application/json',
        cookie,
      },
      body: JSON.stringify(body),
    })
    const cookies = answer.headers.getSetCookie()
    if (cookies.length > 0) cookie = cookies.map((each) => each.split(';')[0]).join('; ')
    const text = await answer.text()
    return { status: answer.status, body: text ? JSON.parse(text) : {} }
  }
}

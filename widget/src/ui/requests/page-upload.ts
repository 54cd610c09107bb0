import type { Platform } from '../../../../browser/platform.ts'

/** Sends a request with XMLHttpRequest, because `fetch` does not report upload progress. */
export const pageUpload: NonNullable<Platform['upload']> = (onProgress) => (input, init) =>
  new Promise((resolve, reject) => {
    const url = String(input)
    const request = new XMLHttpRequest()
    const fail = () => reject(new TypeError('The upload failed'))
    request.open(init?.method ?? 'POST', url)
    new Headers(init?.headers).forEach((value, name) => {
      request.setRequestHeader(name, value)
    })
    request.upload.addEventListener('progress', ({ lengthComputable, loaded, total }) => {
      if (lengthComputable && total > 0) onProgress?.(loaded / total)
    })
    request.addEventListener('load', () => {
      if (request.responseURL !== url) return fail()
      const retryAfter = request.getResponseHeader('Retry-After')
      const headers = retryAfter === null ? undefined : { 'Retry-After': retryAfter }
      resolve(new Response(request.responseText || null, { status: request.status, headers }))
    })
    for (const event of ['error', 'abort', 'timeout']) request.addEventListener(event, fail)
    init?.signal?.addEventListener('abort', () => request.abort(), { once: true })
    if (init?.signal?.aborted) return fail()
    request.send(init?.body as Blob)
  })

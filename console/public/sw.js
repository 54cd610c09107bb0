// Shows pushes as notifications. It caches nothing, and shows only what a push contains.

addEventListener('push', (event) => {
  const { title = 'Console', body = '', path = '/console/', tag } = event.data?.json() ?? {}
  const options = { body, data: path, icon: '/console/icon-192.png', ...(tag && { tag, renotify: true }) }
  event.waitUntil(registration.showNotification(title, options))
})

addEventListener('notificationclick', (event) => {
  event.notification.close()
  event.waitUntil(open(event.notification.data))
})

/** Shows a path in an open console, else in a new window. */
async function open(path) {
  const pages = await clients.matchAll({ type: 'window', includeUncontrolled: true })
  const page = pages.find(({ url }) => url.startsWith(registration.scope))
  if (!page) return clients.openWindow(path)
  await page.focus()
  page.postMessage({ path })
}

// Shows pushes as notifications, and a badge at the icon. It caches nothing, and shows only what a push contains.

addEventListener('push', (event) => {
  const { title, body, path, tag } = event.data.json()
  const options = { body, data: path, icon: '/console/icon-192.png', tag, renotify: true }
  event.waitUntil(Promise.all([registration.showNotification(title, options), navigator.setAppBadge?.()]))
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

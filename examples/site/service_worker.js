// Fetches everything from the server, and without one from the copies of an earlier visit.
addEventListener('install', () => skipWaiting());
addEventListener('activate', (event) => event.waitUntil(clients.claim()));
addEventListener('fetch', (event) => {
  if (event.request.method === 'GET') event.respondWith(answer(event));
});

async function answer(event) {
  const { request } = event;
  const copies = await caches.open('site');
  let response;
  try {
    response = await fetch(request);
  } catch (error) {
    const copy = await copies.match(request);
    if (copy) return copy;
    throw error;
  }
  // Missing files are also remembered, because a model has optional files. Without space the site still works online.
  if (response.status === 200 || response.status === 404) event.waitUntil(copies.put(request, response.clone()).catch(() => {}));
  return response;
}

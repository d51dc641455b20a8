"""The site's public pages."""

from typing import Any

from django.db.models import QuerySet
from django.views.generic import ListView, TemplateView

from example.books.models import Book


class HomeView(TemplateView):
    """The home page, with links to the benchmarks and runs."""

    template_name = "home.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(**kwargs, book_count=Book.objects.count())


class BookListView(ListView):
    """The catalogue: one query for the count and one for the books with author and publisher."""

    template_name = "books/list.html"
    context_object_name = "books"
    paginate_by = 25

    def get_queryset(self) -> QuerySet[Book]:
        books = Book.objects.select_related("author", "publisher")
        search = self.search()
        return books.filter(title__icontains=search) if search else books

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(**kwargs, search=self.search())

    def search(self) -> str:
        """The search text, without NUL, which PostgreSQL cannot store."""
        return self.request.GET.get("q", "").replace("\0", "").strip()[:100]

"""The catalogue in the admin."""

from django.contrib import admin

from example.books.models import Author, Book, Publisher


@admin.register(Book)
class BookAdmin(admin.ModelAdmin):
    list_display = ["title", "author", "publisher", "year", "pages"]
    list_filter = ["publisher", "year"]
    list_select_related = ["author", "publisher"]
    search_fields = ["title", "author__name", "isbn"]
    autocomplete_fields = ["author", "publisher"]


@admin.register(Author)
class AuthorAdmin(admin.ModelAdmin):
    search_fields = ["name"]


@admin.register(Publisher)
class PublisherAdmin(admin.ModelAdmin):
    list_display = ["name", "city"]
    search_fields = ["name"]

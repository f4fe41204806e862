def write_page(results, path):
    pass
